/** A duration as people say it: `430 ms`, `12.3 s`, `4 min 5 s`, `3 h 20 min`. */
export function duration(millis: number): string {
  if (!Number.isFinite(millis)) return "–";
  if (millis < 0) return `-${duration(-millis)}`;
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = millis / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number of bytes: `1.5 MiB`. */
export function bytes(count: number): string {
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) {
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

/** `1 chain`, `2 chains`, `1,000 chains`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
