//! Commands of DAGMan files, each for itself.

use super::lex::{Lexer, Line, Lines, Token};
use super::{DotOptions, NodeKind, NodeStatusFile, Script, ScriptKind, Submit, Tolerance};
use crate::Name;
use crate::diag::{Diagnostics, Span, nearest};

/// A command and where it stands.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) span: Span,
    /// The number of its last line.
    pub(super) last: u32,
    pub(super) command: Command,
}

#[derive(Debug)]
pub(super) enum Command {
    Node(Box<Definition>),
    Description {
        name: Token,
        text: String,
    },
    Splice {
        name: Token,
        file: Name,
        dir: Option<Name>,
    },
    Include(Token),
    /// The first so many names are those of parents.
    Parent {
        names: Box<[Token]>,
        parents: u32,
        weak: bool,
    },
    Script {
        kind: ScriptKind,
        node: Token,
        script: Box<Script>,
    },
    PreSkip {
        node: Token,
        code: i64,
    },
    Retry {
        node: Token,
        max: u32,
        unless: Option<i64>,
    },
    Abort {
        node: Token,
        code: i64,
        returns: Option<u8>,
    },
    Tolerance {
        node: Token,
        tolerance: Tolerance,
    },
    Vars {
        node: Token,
        append: Option<bool>,
        pairs: Vec<(Name, Name)>,
    },
    Priority {
        node: Token,
        value: i32,
    },
    Category {
        node: Token,
        name: Name,
    },
    MaxJobs {
        category: Name,
        limit: u32,
    },
    Done(Token),
    Config(Token),
    Env {
        set: bool,
        text: Name,
    },
    JobAttribute(Name),
    Dot(Box<DotOptions>),
    NodeStatus(NodeStatusFile),
    JobStateLog(Name),
    SavePoint {
        node: Token,
        file: Option<Name>,
    },
    Reject,
    Connect(Box<(Token, Token)>),
    Pin {
        node: Token,
        number: u32,
        input: bool,
    },
}

/// A node as it is defined.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) kind: NodeKind,
    pub(super) name: Token,
    pub(super) submit: Submit,
    pub(super) dir: Option<Name>,
    pub(super) noop: bool,
    pub(super) done: bool,
}

/// All commands, as they are shown to somebody who has mistyped one.
const COMMANDS: [&str; 31] = [
    "JOB",
    "FINAL",
    "PROVISIONER",
    "SERVICE",
    "SUBDAG",
    "SUBMIT-DESCRIPTION",
    "SPLICE",
    "INCLUDE",
    "PARENT",
    "WEAK",
    "SCRIPT",
    "PRE_SKIP",
    "RETRY",
    "ABORT-DAG-ON",
    "TOLERANCE",
    "VARS",
    "PRIORITY",
    "CATEGORY",
    "MAXJOBS",
    "DONE",
    "CONFIG",
    "ENV",
    "SET_JOB_ATTR",
    "DOT",
    "NODE_STATUS_FILE",
    "JOBSTATE_LOG",
    "SAVE_POINT_FILE",
    "REJECT",
    "CONNECT",
    "PIN_IN",
    "PIN_OUT",
];

struct Problem {
    span: Span,
    message: String,
}

type Parsed<T> = Result<T, Problem>;

fn fail<T>(span: Span, message: impl Into<String>) -> Parsed<T> {
    Err(Problem { span, message: message.into() })
}

fn unexpected<T>(token: &Token) -> Parsed<T> {
    fail(token.span, format!("`{}` is not expected here", token.text))
}

/// Reads the commands of a text one after the other. What cannot be read is reported and left out.
pub(super) fn parse(
    text: &str,
    source: u16,
    diags: &mut Diagnostics,
    mut take: impl FnMut(Statement, &mut Diagnostics),
) {
    let mut lines = Lines::new(text);
    let mut line = Line::default();
    while lines.next_command(&mut line) {
        let lexer = Lexer::new(&line, source);
        let span = lexer.whole();
        let mut parser = Parser { lexer, lines: &mut lines, source };
        let mut word = Name::default();
        match parser.command(&mut word) {
            Ok(Some(command)) => {
                let last = parser.lines.number;
                take(Statement { span, last, command }, diags);
            }
            Ok(None) => {
                let message = format!("`{word}` is not a command of DAGMan");
                let diagnostic = diags.error("dag-command", span, "", message);
                if let Some(near) = nearest(&word.to_uppercase(), COMMANDS.into_iter()) {
                    diagnostic.help(format!("did you mean `{near}`?"));
                }
            }
            Err(problem) => {
                let message = format!("{}: {}", word.to_uppercase(), problem.message);
                // The line is that of the command, also if its words go on in others.
                let span = if problem.span.line == span.line { problem.span } else { span };
                diags.error("dag-syntax", span, "", message);
            }
        }
    }
}

struct Parser<'l, 't, 'x> {
    lexer: Lexer<'l>,
    lines: &'x mut Lines<'t>,
    source: u16,
}

impl Parser<'_, '_, '_> {
    fn next(&mut self) -> Parsed<Option<Token>> {
        self.lexer.next().map_err(|message| Problem { span: self.lexer.whole(), message: message.to_owned() })
    }

    fn need(&mut self, what: &str) -> Parsed<Token> {
        match self.next()? {
            Some(token) => Ok(token),
            None => fail(self.lexer.whole(), format!("{what} is missing")),
        }
    }

    fn node(&mut self) -> Parsed<Token> {
        self.need("the name of a node")
    }

    fn number<N: std::str::FromStr>(&mut self, what: &str, allowed: &str) -> Parsed<N> {
        let token = self.need(what)?;
        match token.text.parse() {
            Ok(number) => Ok(number),
            Err(_) => fail(token.span, format!("{what} must be {allowed}, not `{}`", token.text)),
        }
    }

    fn integer(&mut self, what: &str) -> Parsed<i64> {
        self.number(what, "a whole number")
    }

    fn end(&mut self) -> Parsed<()> {
        match self.next()? {
            Some(token) => unexpected(&token),
            None => Ok(()),
        }
    }

    /// The rest of a command after its first word. `None` if there is no such command.
    fn command(&mut self, word: &mut Name) -> Parsed<Option<Command>> {
        let Some(first) = self.next()? else { return Ok(None) };
        word.clone_from(&first.text);
        let letter = |c: char| if c == '-' { '_' } else { c.to_ascii_uppercase() };
        let command = match first.text.chars().map(letter).collect::<Name>().as_str() {
            "JOB" => self.define(NodeKind::Job)?,
            "FINAL" => self.define(NodeKind::Final)?,
            "PROVISIONER" => self.define(NodeKind::Provisioner)?,
            "SERVICE" => self.define(NodeKind::Service)?,
            "SUBDAG" => {
                let external = self.need("EXTERNAL")?;
                if !is(&external, "EXTERNAL") {
                    return fail(external.span, "EXTERNAL is missing");
                }
                self.define(NodeKind::SubDag)?
            }
            "SUBMIT_DESCRIPTION" => self.description()?,
            "SPLICE" => self.splice()?,
            "INCLUDE" => self.only("a file", Command::Include)?,
            "PARENT" => self.parent(false)?,
            "WEAK" => {
                let parent = self.need("PARENT")?;
                if !is(&parent, "PARENT") {
                    return unexpected(&parent);
                }
                self.parent(true)?
            }
            "SCRIPT" => self.script()?,
            "PRE_SKIP" => {
                let command = Command::PreSkip { node: self.node()?, code: self.integer("the exit code")? };
                self.end()?;
                command
            }
            "RETRY" => self.retry()?,
            "ABORT_DAG_ON" => self.abort()?,
            "TOLERANCE" => self.tolerance()?,
            "VARS" => self.vars()?,
            "PRIORITY" => {
                let value = "the priority";
                let command =
                    Command::Priority { node: self.node()?, value: self.number(value, "a whole number")? };
                self.end()?;
                command
            }
            "CATEGORY" => {
                let command =
                    Command::Category { node: self.node()?, name: self.need("the name of a category")?.text };
                self.end()?;
                command
            }
            "MAXJOBS" => {
                let category = self.need("the name of a category")?.text;
                let limit = self.number("the limit", "a whole number that is not negative")?;
                self.end()?;
                Command::MaxJobs { category, limit }
            }
            "DONE" => self.only("the name of a node", Command::Done)?,
            "CONFIG" => self.only("a file", Command::Config)?,
            "ENV" => self.env()?,
            "SET_JOB_ATTR" => Command::JobAttribute(self.rest("an attribute, as key = value,")?.text),
            "DOT" => self.dot()?,
            "NODE_STATUS_FILE" => self.node_status()?,
            "JOBSTATE_LOG" => self.only("a file", |token| Command::JobStateLog(token.text))?,
            "SAVE_POINT_FILE" => {
                let node = self.node()?;
                let file = self.next()?.map(|t| t.text);
                self.end()?;
                Command::SavePoint { node, file }
            }
            "REJECT" => {
                self.end()?;
                Command::Reject
            }
            "CONNECT" => {
                let (from, to) = (self.need("a splice")?, self.need("a second splice")?);
                self.end()?;
                Command::Connect(Box::new((from, to)))
            }
            "PIN_IN" => self.pin(true)?,
            "PIN_OUT" => self.pin(false)?,
            _ => return Ok(None),
        };
        Ok(Some(command))
    }

    fn only(&mut self, what: &str, make: impl FnOnce(Token) -> Command) -> Parsed<Command> {
        let token = self.need(what)?;
        self.end()?;
        Ok(make(token))
    }

    fn rest(&mut self, what: &str) -> Parsed<Token> {
        match self.lexer.rest() {
            Some(token) => Ok(token),
            None => fail(self.lexer.whole(), format!("{what} is missing")),
        }
    }

    fn define(&mut self, kind: NodeKind) -> Parsed<Command> {
        let name = self.node()?;
        if ["PARENT", "CHILD", "ALL_NODES"].iter().any(|word| is(&name, word)) {
            return fail(
                name.span,
                format!("a node cannot be called `{}`, which is a reserved word", name.text),
            );
        }
        if name.text.contains('+') {
            let message =
                format!("the name `{}` has a `+`, which stands between the names of splices", name.text);
            return fail(name.span, message);
        }
        let what = if kind == NodeKind::SubDag { "a DAG file" } else { "a submit description" };
        let token = self.need(what)?;
        let inline = if kind == NodeKind::SubDag { None } else { inline_end(&token) };
        let Some(end) = inline else {
            let (dir, noop, done) = self.options()?;
            let submit = Submit::Named(token.text);
            return Ok(Command::Node(Box::new(Definition { kind, name, submit, dir, noop, done })));
        };
        let line = self.lines.number + 1;
        let (text, rest) = self.inline(&token, &end)?;
        // Options follow the closing token.
        let lexer = Lexer::new(&rest, self.source);
        let (dir, noop, done) = Parser { lexer, lines: self.lines, source: self.source }.options()?;
        let submit = Submit::Inline { text, line };
        Ok(Command::Node(Box::new(Definition { kind, name, submit, dir, noop, done })))
    }

    fn options(&mut self) -> Parsed<(Option<Name>, bool, bool)> {
        let (mut dir, mut noop, mut done) = (None, false, false);
        while let Some(token) = self.next()? {
            if is(&token, "NOOP") {
                noop = true;
            } else if is(&token, "DONE") {
                done = true;
            } else if is(&token, "DIR") {
                dir = Some(self.need("a directory")?.text);
            } else {
                return unexpected(&token);
            }
        }
        Ok((dir, noop, done))
    }

    /// The lines up to the closing token, and what follows it.
    fn inline(&mut self, open: &Token, end: &str) -> Parsed<(String, Line)> {
        if end == "@" {
            return fail(open.span, "`@=` must be followed by a word, which ends the description as `@word`");
        }
        let mut text = String::new();
        while let Some((line, _)) = self.lines.next_text() {
            if let Some(rest) = line.strip_prefix(end).filter(|r| r.is_empty() || r.starts_with(' ')) {
                let mut options = Line::default();
                Lines::new(rest).next_command(&mut options);
                return Ok((text, options));
            }
            text += line;
            text.push('\n');
        }
        fail(open.span, format!("the description that starts here is not closed by `{end}`"))
    }

    fn description(&mut self) -> Parsed<Command> {
        let name = self.need("the name of the description")?;
        let open = self.need("the description")?;
        let Some(end) = inline_end(&open) else {
            return fail(open.span, "the description must be in braces: SUBMIT-DESCRIPTION name { … }");
        };
        let (text, _) = self.inline(&open, &end)?;
        Ok(Command::Description { name, text })
    }

    fn splice(&mut self) -> Parsed<Command> {
        let (name, file) = (self.need("the name of the splice")?, self.need("a DAG file")?.text);
        let mut dir = None;
        if let Some(token) = self.next()? {
            if !is(&token, "DIR") {
                return unexpected(&token);
            }
            dir = Some(self.need("a directory")?.text);
        }
        self.end()?;
        Ok(Command::Splice { name, file, dir })
    }

    fn parent(&mut self, weak: bool) -> Parsed<Command> {
        let mut names = Vec::new();
        let mut parents = None;
        while let Some(token) = self.next()? {
            if is(&token, "CHILD") {
                parents.get_or_insert(names.len());
            } else {
                names.push(token);
            }
        }
        let place = self.lexer.whole();
        match parents {
            _ if names.is_empty() || parents == Some(0) => fail(place, "no parent is named"),
            None => fail(place, "CHILD is missing"),
            Some(parents) if parents == names.len() => fail(place, "no child is named"),
            Some(parents) => Ok(Command::Parent { names: names.into(), parents: parents as u32, weak }),
        }
    }

    fn script(&mut self) -> Parsed<Command> {
        let mut script = Box::<Script>::default();
        let kind = loop {
            let token = self.need("PRE, POST or HOLD")?;
            if is(&token, "DEFER") {
                let status = self.integer("the exit code that defers")?;
                let seconds = self.number("the time to wait", "a number of seconds")?;
                script.defer = Some((status, seconds));
            } else if is(&token, "DEBUG") {
                let file = self.need("a file")?.text;
                let stream = self.need("STDOUT, STDERR or ALL")?;
                if !["STDOUT", "STDERR", "ALL"].iter().any(|word| is(&stream, word)) {
                    return fail(stream.span, format!("`{}` is none of STDOUT, STDERR, ALL", stream.text));
                }
                script.debug = Some((file, Name::new(stream.text.to_ascii_uppercase())));
            } else if is(&token, "PRE") {
                break ScriptKind::Pre;
            } else if is(&token, "POST") {
                break ScriptKind::Post;
            } else if is(&token, "HOLD") {
                break ScriptKind::Hold;
            } else {
                return fail(token.span, format!("`{}` is none of PRE, POST, HOLD", token.text));
            }
        };
        let node = self.node()?;
        script.command = self.rest("the script")?.text;
        Ok(Command::Script { kind, node, script })
    }

    fn retry(&mut self) -> Parsed<Command> {
        let node = self.node()?;
        let max = self.number("the number of retries", "a whole number that is not negative")?;
        let mut unless = None;
        if let Some(token) = self.next()? {
            if !is(&token, "UNLESS-EXIT") {
                return unexpected(&token);
            }
            unless = Some(self.integer("the exit code")?);
        }
        self.end()?;
        Ok(Command::Retry { node, max, unless })
    }

    fn abort(&mut self) -> Parsed<Command> {
        let node = self.node()?;
        let code = self.integer("the exit code to abort on")?;
        let mut returns = None;
        if let Some(token) = self.next()? {
            if !is(&token, "RETURN") {
                return unexpected(&token);
            }
            returns = Some(self.number("the value to return", "between 0 and 255")?);
        }
        self.end()?;
        Ok(Command::Abort { node, code, returns })
    }

    fn tolerance(&mut self) -> Parsed<Command> {
        let node = self.node()?;
        let amount = self.need("the number of failures")?;
        let (digits, percent) = match amount.text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (amount.text.as_str(), false),
        };
        let Some(count) = digits.parse().ok().filter(|n| !percent || *n <= 100) else {
            let message = format!("`{}` is neither a number of failures nor a percentage", amount.text);
            return fail(amount.span, message);
        };
        let mut fail_fast = false;
        if let Some(token) = self.next()? {
            if is(&token, "FAIL-FAST") {
                fail_fast = true;
            } else if !is(&token, "WAIT") {
                return unexpected(&token);
            }
        }
        self.end()?;
        Ok(Command::Tolerance { node, tolerance: Tolerance { count, percent, fail_fast } })
    }

    fn vars(&mut self) -> Parsed<Command> {
        let node = self.node()?;
        let mut append = None;
        let mut pairs = Vec::new();
        while let Some(token) = self.next()? {
            if pairs.is_empty() && append.is_none() && (is(&token, "PREPEND") || is(&token, "APPEND")) {
                append = Some(is(&token, "APPEND"));
                continue;
            }
            let Some((key, value)) = token.text.split_once('=') else {
                return fail(token.span, format!("`{}` is not of the form key=\"value\"", token.text));
            };
            if key.is_empty() || key == "+" || value.is_empty() {
                let missing = if value.is_empty() { "a value" } else { "a name" };
                return fail(token.span, format!("`{}` has no {}", token.text, &missing[2..]));
            }
            if key.to_ascii_lowercase().starts_with("queue") {
                return fail(token.span, format!("the name `{key}` must not begin with `queue`"));
            }
            let key = key.strip_prefix('+').map_or_else(|| Name::new(key), |k| Name::new(format!("My.{k}")));
            pairs.push((key, Name::new(value)));
        }
        if pairs.is_empty() {
            return fail(self.lexer.whole(), "a pair key=\"value\" is missing");
        }
        Ok(Command::Vars { node, append, pairs })
    }

    fn env(&mut self) -> Parsed<Command> {
        let action = self.need("SET or GET")?;
        let set = is(&action, "SET");
        if !set && !is(&action, "GET") {
            return unexpected(&action);
        }
        Ok(Command::Env { set, text: self.rest("a variable")?.text })
    }

    fn dot(&mut self) -> Parsed<Command> {
        let mut dot =
            DotOptions { file: self.need("a file")?.text, overwrite: true, ..DotOptions::default() };
        while let Some(token) = self.next()? {
            match token.text.to_ascii_uppercase().as_str() {
                "UPDATE" => dot.update = true,
                "DONT-UPDATE" => dot.update = false,
                "OVERWRITE" => dot.overwrite = true,
                "DONT-OVERWRITE" => dot.overwrite = false,
                "INCLUDE" => dot.include = Some(self.need("a header file")?.text),
                _ => return unexpected(&token),
            }
        }
        Ok(Command::Dot(Box::new(dot)))
    }

    fn node_status(&mut self) -> Parsed<Command> {
        let file = self.need("a file")?.text;
        let mut status = NodeStatusFile { file, min_seconds: 60, always: false };
        while let Some(token) = self.next()? {
            if is(&token, "ALWAYS-UPDATE") {
                status.always = true;
            } else if let Ok(seconds) = token.text.parse() {
                status.min_seconds = seconds;
            } else {
                return unexpected(&token);
            }
        }
        Ok(Command::NodeStatus(status))
    }

    fn pin(&mut self, input: bool) -> Parsed<Command> {
        let node = self.node()?;
        let place = self.lexer.whole();
        let number = self.number("the number of the pin", "a whole number from 1 on")?;
        if number == 0 {
            return fail(place, "pins are numbered from 1 on");
        }
        self.end()?;
        Ok(Command::Pin { node, number, input })
    }
}

/// Keywords are written in any case, and with `-` or `_`.
pub(super) fn is(token: &Token, keyword: &str) -> bool {
    let same =
        |a: u8, b: u8| a.eq_ignore_ascii_case(&b) || (a == b'_' && b == b'-') || (a == b'-' && b == b'_');
    token.text.len() == keyword.len() && token.text.bytes().zip(keyword.bytes()).all(|(a, b)| same(a, b))
}

/// What closes an inline description that a word opens.
fn inline_end(token: &Token) -> Option<String> {
    if token.text.starts_with('{') {
        return Some("}".to_owned());
    }
    token.text.strip_prefix("@=").map(|tag| format!("@{tag}"))
}
