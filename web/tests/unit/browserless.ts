/** What modules look for in a browser when they are loaded. Has to be imported before them. */
const kept = new Map<string, string>();
const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: (key: string) => void kept.delete(key),
};

class Address {
  pathname = "/ui/runs/12";
  search = "?chain=4";
  hash = "";
  origin = "https://catena.test";
}

export const address = new Address();

/** Where the window has been; the last one is where it is. */
export const visited: string[] = [];

function went(to: string) {
  [address.pathname = "", address.search = ""] = to.split(/(?=\?)/);
}

const history = {
  pushState: (_state: null, _title: string, to: string) => (visited.push(to), went(to)),
  replaceState: (_state: null, _title: string, to: string) => (visited.splice(-1, 1, to), went(to)),
};

Object.assign(globalThis, { location: address, history, sessionStorage: storage, localStorage: storage, window: new EventTarget(), document: Object.assign(new EventTarget(), { hidden: false }) });
