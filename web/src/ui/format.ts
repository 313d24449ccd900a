/** A duration as people say it: `430 ms`, `12.3 s`, `4 min 5 s`, `3 h 20 min`. */
export function duration(millis: number): string {
  if (!Number.isFinite(millis)) return "–";
  if (millis < 0) return `-${duration(-millis)}`;
  // What rounding would make a whole one of the next unit is said in that: `1 min 0 s`, not `60.0 s`.
  if (millis < 999.5) return `${Math.round(millis)} ms`;
  if (millis < 9_995) return `${(millis / 1000).toFixed(2)} s`;
  if (millis < 59_950) return `${(millis / 1000).toFixed(1)} s`;
  const seconds = Math.max(Math.floor(millis / 1000), 60);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number of bytes: `1.5 MiB`. */
export function bytes(count: number): string {
  let unit = 0;
  // Not `1024.0 KiB`.
  while (count >= 1023.95 && unit < UNITS.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count : count.toFixed(1)} ${UNITS[unit]}`;
}

/** A moment, in the time of the user: `14:03:22`, with the day if it is not today. */
export function moment(millis: number): string {
  const then = new Date(millis);
  const time = then.toLocaleTimeString([], { hour12: false });
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? time : `${then.toLocaleDateString()} ${time}`;
}

/** How long ago something was: `3 min ago`. */
export function ago(millis: number, now = Date.now()): string {
  const seconds = Math.max(0, (now - millis) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** How long something has lasted so far. Hundredths of what goes on would only flicker. */
export function lasting(millis: number): string {
  const seconds = Math.max(0, Math.floor(millis / 1000));
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1000);
}

/** `1,000`. */
export function number(n: number): string {
  return n.toLocaleString("en");
}

/** `1 chain`, `2 chains`, `1,000 chains`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** A whole number as it stands in an address or a form; `null` if it is none. */
export function wholeNumber(text: string | null | undefined): number | null {
  return /^\s*\d{1,15}\s*$/.test(text ?? "") ? Number(text) : null;
}

/** A word at the beginning of a heading. */
export function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** What people call a user. The owner of a server is known by machine and directory (`host:/path`); the machine has to do. */
export function shortName(user: string): string {
  return user.replace(/:\/.*$/, "");
}
