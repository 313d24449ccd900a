/**
 * Keeps a text as long as the tab is open, or forgets it (`null`). A storage that is full or forbidden must not keep anybody from
 * working: then it is only forgotten when the page is loaded again.
 */
export function keepInTab(key: string, text: string | null) {
  try {
    if (text === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // Nothing that the user could do about it now.
  }
}
