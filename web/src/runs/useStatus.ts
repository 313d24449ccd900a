import { useEffect, useState } from "react";
import { useQuery } from "../api/query";
import type { StatusView } from "../api/types";
import { isOver } from "./states";
import { useEvents } from "./useEvents";

/** How a run stands, kept up to date: often while it goes on, seldom after it. */
export function useStatus(id: number) {
  const [over, setOver] = useState(false);
  const [kept, setKept] = useState<StatusView>();
  const { data, problem, again } = useQuery<StatusView>(Number.isSafeInteger(id) ? `/runs/${id}` : null, over ? 10_000 : 1000);
  useEvents(over || !kept ? null : `/runs/${id}/events`, again);
  useEffect(() => {
    if (!data) return;
    setKept(data);
    setOver(isOver(data.state));
  }, [data]);
  return { status: kept, problem, again };
}
