/** Has the browser keep something that is in memory as a file. It is never opened as a page, whatever is in it. */
export function save(content: BlobPart[], name: string) {
  const url = URL.createObjectURL(new Blob(content, { type: "application/octet-stream" }));
  saveFrom(url, name);
  // A browser that asks where to put it reads it only then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Has the browser keep what is at an address. */
export function saveFrom(address: string, name: string) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
