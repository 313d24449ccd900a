import { useEffect, useState } from "react";
import { useQuery } from "../api/query";
import type { StatusView } from "../api/types";
import { isOver } from "../ui/states";
import { useEvents } from "./useEvents";

/** How a run stands, kept up to date: often while it goes on, seldom after it. */
export function useStatus(id: number) {
  const [over, setOver] = useState(false);
  const { data: status, problem, again } = useQuery<StatusView>(`/runs/${id}`, over ? 10_000 : 1000);
  useEvents(over || !status ? null : `/runs/${id}/events`, again);
  useEffect(() => {
    if (status) setOver(isOver(status.state));
  }, [status]);
  return { status, problem, again };
}
