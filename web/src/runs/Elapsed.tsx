import { useNow } from "../ui/clock";
import { duration, lasting } from "../ui/format";

/** How long something took, or takes. */
export function Elapsed({ from, to, isOver }: { from: number | null; to: number | null; isOver: boolean }) {
  const now = useNow(!isOver && from !== null);
  if (from === null) return <>–</>;
  if (isOver) return <>{to === null ? "–" : duration(Math.max(0, to - from))}</>;
  return <>{lasting((to ?? now) - from)}</>;
}
