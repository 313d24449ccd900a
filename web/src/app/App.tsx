import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { ask, get, Problem } from "../api/client";
import type { WhoAmI } from "../api/types";
import { RunPage } from "../runs/RunPage";
import { RunsPage } from "../runs/RunsPage";
import { FleetPage } from "../fleet/FleetPage";
import { Empty } from "../ui/parts";
import { Toasts } from "../ui/toasts";
import { usePlace } from "./router";
import { currentToken, signedIn, signOut, useMe } from "./session";
import { Shell } from "./Shell";
import { SignIn } from "./SignIn";
import { Boundary } from "./Boundary";

// What not everybody needs is loaded when it is needed.
const SubmitPage = lazy(() => import("../runs/SubmitPage"));
const ComposeList = lazy(() => import("../compose/ComposeList"));
const ComposePage = lazy(() => import("../compose/ComposePage"));
const SimulatePage = lazy(() => import("../simulate/SimulatePage"));

export function App() {
  const me = useMe();
  const [tried, setTried] = useState(false);
  const [problem, setProblem] = useState<Problem>();

  useEffect(() => {
    // A server that asks for no tokens, or one whose token is known already.
    get<WhoAmI>("/whoami")
      .then((who) => signedIn(who, currentToken(), false))
      .catch((error: Problem) => {
        if (error.status === 401) signOut();
        else setProblem(error);
      })
      .finally(() => setTried(true));
  }, []);

  if (!tried) return null;
  return (
    <>
      {me ? (
        <Shell>
          <Boundary>
            <Suspense fallback={<Empty>Loading …</Empty>}>
              <Content />
            </Suspense>
          </Boundary>
        </Shell>
      ) : (
        <SignIn problem={problem} />
      )}
      <Toasts />
    </>
  );
}

function Content(): ReactNode {
  const { parts, query } = usePlace();
  const [section = "runs", id, part] = parts;
  useEffect(() => {
    const words = { runs: "Runs", submit: "Submit", fleet: "Fleet", compose: "Compose", simulate: "Simulate" };
    document.title = `${words[section as keyof typeof words] ?? "Catena"}${id ? ` ${id}` : ""} – Catena`;
  }, [section, id]);
  switch (section) {
    case "runs":
      return id ? <RunPage key={id} id={Number(id)} tab={part ?? "graph"} /> : <RunsPage />;
    case "submit":
      return <SubmitPage again={query.get("again")} />;
    case "fleet":
      return <FleetPage />;
    case "compose":
      return id ? <ComposePage key={id} id={id} /> : <ComposeList />;
    case "simulate":
      return <SimulatePage run={query.get("run")} />;
    default:
      return <Empty>There is no such page.</Empty>;
  }
}

/** Ends the session: used where the server says that the token is not good any more. */
export async function checkToken(): Promise<void> {
  try {
    await ask("/whoami");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) signOut();
  }
}
