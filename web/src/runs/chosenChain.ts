import { setParameter, usePlace } from "../app/router";
import { wholeNumber } from "../ui/format";

/** The chain that is shown beside a part of a run. It is in the address, so that others can be sent there. */
export function useChosenChain(): number | null {
  return wholeNumber(usePlace().query.get("chain"));
}

/** Shows another chain there, or none. */
export function chooseChain(chain: number | null) {
  setParameter("chain", chain === null ? null : String(chain));
}
