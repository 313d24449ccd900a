/** How a file can be shown. */
export type Kind = { show: "image"; type: string } | { show: "table"; separator: string | null } | { show: "json" } | { show: "text" } | { show: "none" };

const IMAGES = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["svg", "image/svg+xml"],
]);

/** How a file with this name and this beginning can be shown. What it contains counts more than what it is called. */
export function kindOf(name: string, beginning: Uint8Array): Kind {
  const type = imageType(beginning);
  if (type) return { show: "image", type };
  const ending = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  if (!isText(beginning)) return { show: "none" };
  if (IMAGES.get(ending) === "image/svg+xml") return { show: "image", type: "image/svg+xml" };
  if (ending === "csv") return { show: "table", separator: null };
  if (ending === "tsv" || ending === "tab") return { show: "table", separator: "\t" };
  if (ending === "json" || ending === "geojson") return { show: "json" };
  return { show: "text" };
}

/** The type of a picture by its first bytes. */
function imageType(bytes: Uint8Array): string | null {
  const text = String.fromCharCode(...bytes.subarray(0, 12));
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return IMAGES.get("png")!;
  if (text.startsWith("\xff\xd8\xff")) return IMAGES.get("jpg")!;
  if (/^GIF8[79]a/.test(text)) return IMAGES.get("gif")!;
  if (/^RIFF[^]{4}WEBP/.test(text)) return IMAGES.get("webp")!;
  return null;
}

/** Whether some bytes are UTF-8. The last character may be cut. */
export function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
