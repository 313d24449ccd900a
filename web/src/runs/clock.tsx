import { useEffect, useState } from "react";
import { duration } from "../ui/format";

/** The time, again every second while somebody needs it. */
function useNow(isNeeded: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isNeeded) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isNeeded]);
  return now;
}

/** How long something took, or takes. */
export function Elapsed({ from, to, isOver }: { from: number | null; to: number | null; isOver: boolean }) {
  const now = useNow(!isOver && from !== null);
  if (from === null) return <>–</>;
  if (isOver && to === null) return <>–</>;
  const millis = Math.max(0, (to ?? now) - from);
  // What goes on is told in whole seconds: the rest would only flicker.
  return <>{isOver || millis >= 60_000 ? duration(millis) : `${Math.floor(millis / 1000)} s`}</>;
}
