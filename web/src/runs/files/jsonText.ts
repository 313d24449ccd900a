/**
 * Breaks JSON into lines and indents them. Done with its text, not with its values: numbers with more digits than JavaScript knows stay
 * as they are. `null` if it is not JSON.
 */
export function prettyJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let out = "";
  let depth = 0;
  const newline = () => (out += `\n${"  ".repeat(depth)}`);
  tokens.forEach((token, i) => {
    const previous = tokens[i - 1];
    if (token === "{" || token === "[") {
      out += token;
      depth += 1;
      if (!isClosing(tokens[i + 1])) newline();
    } else if (isClosing(token)) {
      depth -= 1;
      if (previous !== "{" && previous !== "[") newline();
      out += token;
    } else if (token === ",") {
      out += token;
      newline();
    } else {
      out += token === ":" ? ": " : token;
    }
  });
  return out;
}

function isClosing(token: string | undefined): boolean {
  return token === "}" || token === "]";
}
