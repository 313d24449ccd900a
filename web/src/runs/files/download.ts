import { ask } from "../../api/client";
import { currentToken } from "../../app/session";
import { save, saveFrom } from "../../ui/save";
import { readPart } from "./part";

/** Larger files are not held in memory if the browser can write them to the disk as they arrive. */
const LARGE = 200 << 20;

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<{ createWritable(): Promise<WritableStream> }>;
}

/** Has the browser keep something that the server has. */
export async function download(path: string, name: string): Promise<void> {
  if (!currentToken()) {
    saveFrom(path, name);
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
  save([await (await ask(path)).blob()], name);
}

/** The last part of a path, which is a good name for a file. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? "file";
}
