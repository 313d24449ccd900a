import { ask } from "../../api/client";
import { currentToken } from "../../app/session";
import { readPart } from "./part";

/** Larger files are not held in memory if the browser can write them to the disk as they arrive. */
const LARGE = 200 << 20;

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{ createWritable(): Promise<WritableStream> }>;
}

/** Has the browser keep something that the server has. */
export async function download(path: string, name: string): Promise<void> {
  if (!currentToken()) {
    click(path, name);
    return;
  }
  // A link cannot carry a token, so the file is asked for here.
  const picker = (window as Picker).showSaveFilePicker;
  if (picker && ((await readPart(path, 0, 1)).total ?? 0) > LARGE) {
    const handle = await picker.call(window, { suggestedName: name }).catch(() => null);
    if (!handle) return;
    const response = await ask(path);
    await response.body!.pipeTo(await handle.createWritable());
    return;
  }
  save(await (await ask(path)).blob(), name);
}

/** Has the browser keep something that is in memory. */
export function save(blob: Blob, name: string) {
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  click(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function click(href: string, name: string) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

/** The last part of a path, which is a good name for a file. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? "file";
}
