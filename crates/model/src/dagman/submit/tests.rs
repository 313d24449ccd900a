//! What submit descriptions mean, by example.

use super::*;
use std::fs;

fn context(directory: &Path) -> SubmitContext<'_> {
    let name = Path::new("job.sub");
    SubmitContext { name, line: 1, directory, before: Vec::new(), after: Vec::new(), cluster: 7 }
}

fn read(text: &str) -> Result<Submission, String> {
    read_submit(text, &context(Path::new("/nowhere")))
}

/// The only job of a description that also names a program.
fn job(text: &str) -> SubmitJob {
    let submission = read(&format!("executable = x\n{text}\nqueue\n")).unwrap();
    assert_eq!(submission.warnings, Vec::<String>::new());
    assert_eq!(submission.jobs.len(), 1);
    submission.jobs.into_iter().next().unwrap()
}

fn arguments(text: &str) -> Vec<String> {
    job(text).arguments.iter().map(ToString::to_string).collect()
}

/// The arguments of all jobs, each as one text.
fn all(text: &str) -> Vec<String> {
    all_in(Path::new("/nowhere"), text)
}

fn all_in(directory: &Path, text: &str) -> Vec<String> {
    let jobs = read_submit(&format!("executable = x\n{text}"), &context(directory)).unwrap().jobs;
    jobs.iter().map(|job| job.arguments.join(" ")).collect()
}

fn error(text: &str) -> String {
    read(text).unwrap_err()
}

/// A directory with files, which is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-submit-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_description_without_more_has_the_usual_values() {
    let job = job("");
    assert_eq!((job.executable.as_str(), job.directory.as_path()), ("x", Path::new("/nowhere")));
    assert_eq!((job.input, job.output, job.error, job.log), (None, None, None, None));
    assert_eq!((job.resources, job.getenv), (Resources::default(), GetEnv::No));
    assert_eq!((job.success_exit_code, job.max_retries, job.priority, job.noop), (0, None, None, false));
    assert_eq!((job.transfer, job.max_runtime), (None, None));
}

#[test]
fn old_arguments_are_split_at_space_and_know_escaped_quotes() {
    assert_eq!(arguments("Arguments = -a  "), ["-a"]);
    assert_eq!(arguments(r#"arguments = one \"two\"	'three x'"#), ["one", "\"two\"", "'three", "x'"]);
    assert!(error("executable=x\narguments = a \"b\"\nqueue").starts_with("job.sub:2:13: `arguments`: "));
}

#[test]
fn new_arguments_have_single_quotes_in_double_quotes() {
    assert_eq!(arguments(r#"arguments = "3 simple 'a b' '' it''s""#), ["3", "simple", "a b", "", "its"]);
    assert_eq!(arguments(r#"args = "'it''s' ""quoted"" x'y z'""#), ["it's", "\"quoted\"", "xy z"]);
    for wrong in [r#""a"#, r#""a" b"#, r#""'a""#, r#""a"b""#] {
        assert!(read(&format!("executable=x\narguments = {wrong}\nqueue")).is_err(), "{wrong}");
    }
}

#[test]
fn environments_have_two_syntaxes_too() {
    let of = |text| {
        let variables = job(text).environment.into_iter();
        variables.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(of("environment = a=b; c=d e;f="), ["a=b", "c=d e", "f="]);
    assert_eq!(of(r#"env = "a=b 'c=d e' f='x ''y''' a=2""#), ["c=d e", "f=x 'y'", "a=2"]);
    assert_eq!(of(r#"environment = a="b;c=\""#), ["a=\"b", "c=\\\""]);
    assert!(error("executable=x\nenvironment = a\nqueue").contains("`a` is not a variable"));
}

#[test]
fn the_environment_may_be_taken_over_in_part() {
    assert_eq!(job("getenv = True").getenv, GetEnv::All);
    assert_eq!(job("getenv = no").getenv, GetEnv::No);
    let some = ["PATH", "OMP_*", "!OMP_X"].map(Name::new).to_vec();
    assert_eq!(job("getenv = PATH, OMP_*, !OMP_X").getenv, GetEnv::Some(some));
}

#[test]
fn paths_start_at_the_initial_directory_but_the_program_does_not() {
    let here = Directory::new("paths");
    here.file("run.sh", "");
    let text = "executable = run.sh\ninitialdir = ./sub\ninput = /dev/null\noutput = o/$(Process)\nqueue";
    let job = &read_submit(text, &context(&here.0)).unwrap().jobs[0];
    assert_eq!(Path::new(job.executable.as_str()), here.0.join("run.sh"));
    assert_eq!(job.directory.to_str(), here.0.join("sub").to_str());
    assert_eq!(job.input.as_deref(), Some(Path::new("/dev/null")));
    assert_eq!(job.output.as_deref(), Some(here.0.join("sub/o/0").as_path()));
    let other = read("executable = bin/x\nqueue").unwrap();
    assert_eq!(other.jobs[0].executable, "/nowhere/bin/x");
}

#[test]
fn macros_have_the_values_they_have_at_queue() {
    assert_eq!(arguments("arguments = $(X) $(x.y)\nx = 1\nX = 2\nx.y=3"), ["2", "3"]);
    assert_eq!(arguments("arguments = $(none:a$(none:b) c) $(none)d"), ["ab", "c", "d"]);
    assert_eq!(arguments("n = me\nfoo_me = yes\narguments = $(foo_$(n)) $(empty:e)\nempty ="), ["yes", "e"]);
    assert_eq!(
        arguments("arguments = $$(Arch) $$([Memory*2]) $(ls -l) $(DOLLAR)(x) $(open"),
        ["$$(Arch)", "$$([Memory*2])", "$(ls", "-l)", "$(x)", "$(open"]
    );
}

#[test]
fn a_macro_in_itself_is_its_earlier_value() {
    assert_eq!(arguments("x = 1\nx = $(X) $(x:9) 2\nx = $(x) 3\narguments = $(x)"), ["1", "1", "2", "3"]);
    assert_eq!(arguments("x = $(x:9)\narguments = $(x)"), ["9"]);
    assert_eq!(arguments("f = a/b.c\nf = $Fn(f)\narguments = $(f)"), ["b"]);
    let many = "x = $(x) a\n".repeat(5000);
    assert_eq!(arguments(&format!("{many}arguments = $(x)")).len(), 5000);
}

#[test]
fn real_recursion_is_an_error_and_not_the_end() {
    let message = error("executable = $(a)\na = $(b)\nb = $(a)\nqueue");
    assert!(
        message.starts_with("job.sub:1:14: ") && message.contains("needs that value itself"),
        "{message}"
    );
    let lines = |range: std::ops::Range<u32>, line: fn(u32) -> String| range.map(line).collect::<String>();
    let chain = lines(0..10_000, |n| format!("m{n} = $(m{})\n", n + 1));
    assert!(error(&format!("{chain}executable = $(m0)\nqueue")).contains("too deep"));
    let doubled = lines(0..64, |n| format!("m{n} = $(m{0})$(m{0})\n", n + 1));
    assert!(error(&format!("{doubled}m64 = xx\nexecutable = $(m0)\nqueue")).contains("too long"));
    assert!(
        error(&format!("x = ab\n{}executable = x\nqueue", "x = $(x)$(x)\n".repeat(64))).contains("too long")
    );
}

#[test]
fn functions_take_names_of_files_apart() {
    let of = |call: &str| arguments(&format!("f = /a/bc/d.tar.gz\narguments = {call}")).join(" ");
    assert_eq!(
        of("$Fp(f) $Fd(f) $Fdb(f) $Fn(f) $Fx(f) $Fxb(f) $Fnx(f) $F(f)"),
        "/a/bc/ bc/ bc d.tar .gz gz d.tar.gz /a/bc/d.tar.gz"
    );
    assert_eq!(
        of("$Fqa(f) $Ff(z) $Fn(/tmp/s.exe) $BASENAME(f) $DIRNAME(f)"),
        "'/a/bc/d.tar.gz' /nowhere/z s d.tar.gz /a/bc/"
    );
    assert_eq!(of("$Fpw(f)"), "\\a\\bc\\");
}

#[test]
fn functions_compute_and_choose() {
    let of =
        |call: &str| arguments(&format!("x = 6\ny = $(x) * 7\nl = a, b,c\narguments = {call}")).join(" ");
    assert_eq!(of("$INT(y) $INT(y,%05d) $INT(3*3) $REAL(x,%.2f) $REAL(x)"), "42 00042 9 6.00 6");
    assert_eq!(of("$STRING(x) $STRING(x,<%s>) $EVAL(y)"), "6 <6> 42");
    assert_eq!(of("$CHOICE(1,l) $CHOICE(2,p,q,r) $CHOICE(0,$(l))"), "b r a");
    let text =
        "n = abcdef\narguments = $SUBSTR(n,2) $SUBSTR(n,0,-2) $SUBSTR(n,1,3) $SUBSTR(n,-1) $SUBSTR(n,4,-3)x";
    assert_eq!(arguments(text), ["cdef", "abcd", "bcd", "f", "x"]);
    assert_eq!(of("$CHOICE(IsWindows,unix,dos)"), if cfg!(windows) { "dos" } else { "unix" });
    assert!(["3", "5"].contains(&of("$RANDOM_INTEGER(3,6,2)").as_str()));
    assert!(["p", "q"].contains(&of("$RANDOM_CHOICE(p,q)").as_str()));
    assert_eq!(
        of("$ENV(NO_SUCH_VARIABLE_HERE:none)$ENV(CARGO_PKG_NAME:)"),
        format!("none{}", std::env::var("CARGO_PKG_NAME").unwrap_or_default())
    );
    for wrong in ["$INT(abc)", "$CHOICE(7,l)", "$RANDOM_INTEGER(6,3)", "$SUBSTR(n,x)"] {
        assert!(error(&format!("executable = x\narguments = {wrong}\nqueue")).starts_with("job.sub:2:13: "));
    }
}

#[test]
fn macros_of_the_node_count_before_or_after_the_description() {
    let mut context = context(Path::new("/nowhere"));
    context.before = vec![("A".into(), "before".into()), ("b".into(), "before".into())];
    context.after = vec![("c".into(), "$(c) after".into()), ("+x".into(), "1".into())];
    let text = "executable = x\nB = text\nc = text\narguments = $(a) $(b) $(c) $(My.x) $(ClusterId)";
    let jobs = read_submit(text, &context).unwrap().jobs;
    assert_eq!(jobs[0].arguments, ["before", "text", "text", "after", "1", "7"]);
}

#[test]
fn lines_are_continued_commented_and_tagged() {
    let text = "# first\r\nexecutable = x\r\narguments = a \\\r\n  # not this\r\n  b \\\r\n\r\nEnv @=end\r\n\"x=1\r\ny=2\"\r\n@end\r\nqueue\r\n# last\r\n\r\n";
    let jobs = read(text).unwrap().jobs;
    assert_eq!(jobs[0].arguments, ["a", "b"]);
    assert_eq!(jobs[0].environment.len(), 2);
    assert!(error("executable @=end\nx").contains("1:1: this value is not closed by `@end`"));
}

#[test]
fn conditions_choose_lines() {
    let text = "x = 1\nIF defined x\n if ! defined y && z\n endif\nendif";
    assert!(error(text).starts_with("job.sub:3:2: `defined y && z` is not a condition"));
    let of = |condition: &str| {
        let text = format!(
            "x = 1\ne =\nif {condition}\n arguments = a\nelif true\n arguments = b\nelse\n junk\nendif"
        );
        arguments(&text).join("") == "a"
    };
    for yes in [
        "defined x",
        "! defined y",
        "!defined e",
        "version >= 8.1.2",
        "version == 25",
        "$(x)",
        "true",
        "!0",
        "YES",
    ] {
        assert!(of(yes), "{yes}");
    }
    for no in ["defined y", "version < 9", "! version > 8.9", "$(none:0)", "False", "!1.5"] {
        assert!(!of(no), "{no}");
    }
    assert_eq!(
        arguments(
            "if false\nif true\narguments = a\nelse\narguments = b\nendif\nqueue x from (\n endif\n)\nendif"
        ),
        [""; 0]
    );
    assert!(error("if maybe\nendif").starts_with("job.sub:1:1: `maybe` is not a condition"));
    assert_eq!(error("\n if true\n"), "job.sub:2:2: this `if` has no `endif`");
    assert!(error("endif").contains("no `if`") && error("if 1\nelse\nelse\nendif").contains("no `if`"));
}

#[test]
fn files_are_taken_in_where_they_are_named() {
    let here = Directory::new("include");
    here.file("more.inc", "n = 3\narguments = $(n)\n");
    here.file("bad.inc", "ok = 1\n  oops\n");
    here.file("self.inc", "include : self.inc\n");
    assert_eq!(all_in(&here.0, "include : more.inc\nn = 4\nInclude ifexist: none\nqueue"), ["4"]);
    let of = |text: &str| read_submit(text, &context(&here.0)).unwrap_err();
    assert!(
        of("include : bad.inc").starts_with(&format!("{}:2:3: `oops`", here.0.join("bad.inc").display()))
    );
    assert!(of("include : self.inc").contains("too many files"));
    assert!(of("include : none.inc").starts_with("job.sub:1:1: "));
    assert!(
        of("include command : ls").contains("not supported")
            && of("include : ls |").contains("not supported")
    );
}

#[test]
fn queue_counts_and_goes_through_lists() {
    assert_eq!(all("arguments = $(Process)\nqueue 3"), ["0", "1", "2"]);
    assert_eq!(all("n = 2\narguments = $(ProcId)$(Step)\nQueue $(n)*1"), ["00", "11"]);
    let text = "arguments = $(Item) $(Step) $(ItemIndex) $(Row) $(Process)\n";
    assert_eq!(
        all(&format!("{text}queue 2 in (A, B)")),
        ["A 0 0 0 0", "A 1 0 0 1", "B 0 1 1 2", "B 1 1 1 3"]
    );
    assert_eq!(all(&format!("{text}queue in [1:] A B C")), ["B 0 1 1 0", "C 0 2 2 1"]);
    assert_eq!(all("queue 1 arguments in A, B"), ["A", "B"]);
    assert_eq!(all("queue arguments in (\n a\n # no\n b, c\n)\n"), ["a", "b", "c"]);
    assert_eq!(all("l = a b\nqueue arguments in $(l)"), ["a", "b"]);
}

#[test]
fn queue_reads_items_from_lines_files_and_commands() {
    let here = Directory::new("from");
    here.file("items.txt", "# items\r\none, 1 x\r\n\r\ntwo 2\r\nthree\r\n");
    let text = "arguments = [$(a)] [$(b)]\n";
    let lines = "queue a,b from (\n f1, -a -b 26\n f2   -c, d\n)\n# end";
    assert_eq!(all(&format!("{text}{lines}")), ["[f1] [-a -b 26]", "[f2] [-c, d]"]);
    assert_eq!(
        all_in(&here.0, &format!("{text}queue a b from items.txt")),
        ["[one] [1 x]", "[two] [2]", "[three] []"]
    );
    assert_eq!(
        all_in(&here.0, &format!("{text}queue a,b from [::2] items.txt")),
        ["[one] [1 x]", "[three] []"]
    );
    assert_eq!(all_in(&here.0, &format!("{text}queue a from ls |")), ["[items.txt] []"]);
    let of = |text: &str| read_submit(text, &context(&here.0)).unwrap_err();
    assert!(of("executable = x\nqueue a from none.txt").starts_with("job.sub:2:1: "));
    assert!(of("executable = x\nqueue a from false |").contains("`false` ended with"));
}

#[test]
fn queue_finds_files() {
    let here = Directory::new("glob");
    for name in ["b.dat", "a.dat", ".c.dat", "d.dat/x.txt", "e/f/1.in", "g/f/2.in"] {
        here.file(name, "");
    }
    let of = |items: &str| all_in(&here.0, &format!("queue arguments matching {items}"));
    assert_eq!(of("*.dat"), ["a.dat", "b.dat", "d.dat"]);
    assert_eq!(of("files *.dat"), ["a.dat", "b.dat"]);
    assert_eq!(of("dirs (*)"), ["d.dat", "e", "g"]);
    assert_eq!(of("files [1:] [a-b].dat */f/?.in"), ["b.dat", "e/f/1.in", "g/f/2.in"]);
    assert_eq!(of("any a* *.dat"), ["a.dat", "b.dat", "d.dat"]);
    let none = read_submit("executable = x\nqueue matching *.none", &context(&here.0));
    assert_eq!(none.unwrap_err(), "job.sub:2:1: `queue` makes no job");
}

#[test]
fn there_is_one_queue_and_nothing_after_it() {
    assert_eq!(read("executable = x").unwrap().jobs.len(), 1);
    assert_eq!(
        error("executable = x\nqueue\n\n queue 2"),
        "job.sub:4:2: a node has exactly one `queue`, and this is another"
    );
    assert_eq!(error("executable = x\nqueue\ny = 1"), "job.sub:3:1: nothing may follow `queue`");
    assert!(read("executable = x\nif true\nqueue\nelse\nqueue 2\nendif").is_ok());
    assert!(error("executable = x\nqueue x from (\na").contains("not closed"));
    for wrong in
        ["queue many", "queue -1", "queue 0", "queue in", "queue 1000000000000", "queue in [::0] (a)"]
    {
        assert!(error(&format!("executable = x\n{wrong}")).starts_with("job.sub:2:1: "), "{wrong}");
    }
}

#[test]
fn problems_are_told_with_their_place() {
    assert_eq!(error("queue"), "job.sub:1:1: `executable` is missing");
    assert_eq!(
        error("executable = x\n  priority =  high\nqueue"),
        "job.sub:2:15: `priority` must be a whole number, not `high`"
    );
    assert!(error("executable = x\nhello there\n").starts_with("job.sub:2:1: `hello` is no command"));
    assert!(error("two words = x").contains("`two words` is not a key"));
    assert!(error("error : stop $(x:now)").ends_with("1:1: stop now"));
    let inline = SubmitContext { line: 40, ..context(Path::new("/nowhere")) };
    assert!(
        read_submit("\n request_cpus = x\nexecutable=x", &inline).unwrap_err().starts_with("job.sub:41:17: ")
    );
}

#[test]
fn sizes_have_the_units_of_htcondor() {
    let memory = |text: &str| job(&format!("request_memory = {text}")).resources.memory;
    assert_eq!(memory("512"), 512 << 20);
    assert_eq!(memory("2 GB"), 2 << 30);
    assert_eq!(memory("1.5g"), 3 << 29);
    assert_eq!(memory("100K"), 100 << 10);
    assert_eq!(memory("1 TiB"), 1 << 40);
    assert_eq!(memory("2 * 1024"), 2 << 30);
    assert_eq!(job("request_disk = 4").resources.disk, 4096);
    assert_eq!(job("request_disk = 1M").resources.disk, 1 << 20);
    let job = job("request_cpus = 0.5\nrequest_gpus = 2");
    assert_eq!((job.resources.cpus, job.resources.named.get("gpus")), (500, Some(&2000)));
    for wrong in ["lots", "-1", "1 XB", "B"] {
        let message = error(&format!("executable=x\nrequest_memory = {wrong}\nqueue"));
        assert!(message.starts_with("job.sub:2:18: `request_memory` must be a size"), "{message}");
    }
}

#[test]
fn requirements_become_capabilities_and_resources() {
    let architecture = std::env::consts::ARCH.to_uppercase();
    let text = format!(
        "requirements = (OpSys == \"LINUX\" && (TARGET.Arch =?= \"{architecture}\")) && HasJava && \\
         (TARGET.HasFile == True) && (Memory >= 2048) && 4 <= Cpus && Disk > 9 && HasJava && true && \\
         \"WINDOWS\" == OpSys && Arch == \"INTEL\" && TARGET.Memory >= RequestMemory && GPUs >= 1"
    );
    let job = job(&text);
    assert_eq!(job.capabilities, ["HasFile", "HasJava", "arch:intel", "opsys:windows"]);
    let resources = job.resources;
    assert_eq!((resources.memory, resources.cpus, resources.disk), (2 << 30, 4000, 10 << 10));
    assert_eq!(resources.named.get("gpus"), Some(&1000));
}

#[test]
fn requirements_that_are_not_known_are_told() {
    let text = "executable = x\nrequirements = (a || HasB) && Machine == \"x && y\" && HasC\nqueue 2";
    let submission = read(text).unwrap();
    assert_eq!(submission.jobs[1].capabilities, ["HasC"]);
    assert_eq!(
        submission.warnings,
        [
            "job.sub:2:16: `requirements`: the term `a || HasB` is ignored",
            "job.sub:2:16: `requirements`: the term `Machine == \"x && y\"` is ignored",
        ]
    );
}

#[test]
fn files_move_only_if_asked_for() {
    assert_eq!(job("transfer_input_files = a\nshould_transfer_files = IF_NEEDED").transfer, None);
    let keys =
        "initialdir = d\nshould_transfer_files = yes\ntransfer_input_files = a, /b/c/, e/, http://f/g\n";
    let transfer = job(&format!("{keys}transfer_output_files = o1,o 2\ntransfer_output_remaps = \"o1 = x/o1; a\\;b=c\\=d\"\ntransfer_executable = false")).transfer.unwrap();
    assert_eq!(transfer.inputs, ["/nowhere/d/a", "/b/c/", "/nowhere/d/e/", "http://f/g"]);
    assert_eq!(transfer.outputs, Some(vec!["o1".into(), "o 2".into()]));
    assert_eq!(transfer.remaps, [("o1".into(), "x/o1".into()), ("a;b".into(), "c=d".into())]);
    assert!(!transfer.executable);
    let transfer = job("should_transfer_files = YES").transfer.unwrap();
    assert_eq!((transfer.outputs, transfer.executable), (None, true));
    assert_eq!(
        job("should_transfer_files = YES\ntransfer_output_files = \"\"").transfer.unwrap().outputs,
        Some(vec![])
    );
}

#[test]
fn retries_limits_and_other_keys_are_honoured() {
    let text = "max_retries = 3\nretry_until = 4\nsuccess_exit_code = -2\npriority = $(P)\nP = -7\nnoop_job = True\nallowed_job_duration = 60\nallowed_execute_duration = 30\non_exit_remove = true\nhold = false\n+My = 1\nuniverse = Vanilla";
    let job = job(text);
    assert_eq!((job.max_retries, job.retry_until, job.success_exit_code), (Some(3), Some(4), -2));
    assert_eq!((job.priority, job.noop, job.max_runtime), (Some(-7), true, Some(Duration::from_secs(30))));
}

#[test]
fn what_is_not_honoured_is_told_once() {
    let text = "executable = x\nrank = Memory\nuse feature : x\nperiodic_remove = a > $(Process)\nretry_until = ExitCode > 3\nhold = true\nqueue 3";
    let warnings = read(text).unwrap().warnings;
    let told = ["3:1: `use", "4:19: `periodic_remove`", "6:8: `hold`", "2:8: `rank`", "5:15: `retry_until`"];
    assert_eq!(warnings.len(), told.len(), "{warnings:?}");
    assert!(warnings.iter().zip(told).all(|(w, t)| w.starts_with(&format!("job.sub:{t}"))), "{warnings:?}");
}

#[test]
fn only_programs_of_the_machine_can_be_run() {
    let message = error("executable = x\nuniverse = docker\nqueue");
    assert_eq!(message, "job.sub:2:12: universe = docker: only programs of the machine can be run");
    let message = error("executable = x\ncontainer_image = a.sif\nqueue");
    assert_eq!(message, "job.sub:2:19: container_image = a.sif: only programs of the machine can be run");
}

#[test]
fn long_and_deep_texts_are_read_in_linear_time() {
    let many = 300_000;
    for (start, part) in [
        ("arguments = ", "$("),
        ("arguments = ", "$(x:"),
        ("x = ", "$(x:"),
        ("x = ", "a b "),
        ("requirements = ", "(("),
        ("arguments = \"", "' "),
        ("request_cpus = ", "-("),
        ("queue in ", "[a "),
        ("", "if true\n"),
        ("", "a \\\n"),
        ("$", "$a"),
    ] {
        let text = format!("executable = x\n{start}{}", part.repeat(many));
        if let Err(message) = read(&text) {
            assert!(message.len() < 2000, "{message}");
        }
    }
}

#[test]
fn no_text_is_the_end_of_the_reader() {
    let parts = [
        "executable = x\n",
        "queue ",
        "queue",
        "\n",
        "\r\n",
        "x",
        "y = ",
        "arguments = ",
        "$(",
        "$(x",
        ":",
        ")",
        "(",
        "$$(",
        "$F",
        "$Fn(",
        "$INT(",
        "$SUBSTR(",
        "$CHOICE(",
        "$REAL(",
        "$ENV(",
        "$RANDOM_INTEGER(",
        "%d",
        "%.9f",
        ",",
        "1",
        "-",
        "99999999999",
        "0",
        "[",
        "]",
        "[1:2]",
        " in ",
        " from ",
        " matching ",
        "*",
        "\"",
        "'",
        "\\",
        "\\\n",
        "@=",
        "@=a",
        "@a",
        "if ",
        "else\n",
        "endif\n",
        "elif ",
        "defined ",
        "version ",
        ">=",
        "==",
        "&&",
        "requirements = ",
        "HasX",
        "Memory",
        "ü",
        "€",
        "\0",
        "#",
        ";",
        "=",
        "+",
        "request_memory = ",
        "K",
        "iB",
        "transfer_output_remaps = ",
        "should_transfer_files = yes\n",
        "environment = ",
        "include : ",
        "use ",
        "\t",
        ".",
        "1e9",
        "true",
        "!",
    ];
    // A simple generator of random numbers (Knuth, MMIX): the same texts each time.
    let mut state = 1_u64;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for _ in 0..30_000 {
        let text: String = (0..next(40)).map(|_| parts[next(parts.len())]).collect();
        for text in [text.clone(), format!("executable = x\n{text}")] {
            if let Err(message) = read(&text) {
                assert!(message.starts_with("job.sub:"), "{message}");
            }
        }
    }
}
