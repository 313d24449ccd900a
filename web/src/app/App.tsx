import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { asProblem, get, whenTokenRefused, type Problem } from "../api/client";
import type { WhoAmI } from "../api/types";
import { RunPage } from "../runs/RunPage";
import { RunsPage } from "../runs/RunsPage";
import { FleetPage } from "../fleet/FleetPage";
import { Empty } from "../ui/parts";
import { wholeNumber } from "../ui/format";
import { complain, Toasts } from "../ui/toasts";
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
  const { parts } = usePlace();
  const [tried, setTried] = useState(false);
  const [problem, setProblem] = useState<Problem>();

  useEffect(() => {
    whenTokenRefused(() => {
      signOut();
      complain(new Error("You are signed out: the token is not known here any more, or it has expired."));
    });
    // A server that asks for no tokens, or one whose token is known already.
    get<WhoAmI>("/whoami")
      .then((who) => signedIn(who, currentToken(), false))
      .catch((error: unknown) => {
        const refused = asProblem(error);
        if (refused.status !== 401) setProblem(refused);
      })
      .finally(() => setTried(true));
  }, []);

  if (!tried) return null;
  return (
    <>
      {me ? (
        <Shell>
          <Boundary place={parts.join("/")}>
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
    // Another page begins at its beginning, however far the one before was scrolled.
    document.getElementById("content")?.scrollTo(0, 0);
    const words = { runs: "Runs", submit: "Submit", fleet: "Fleet", compose: "Compose", simulate: "Simulate" };
    document.title = `${words[section as keyof typeof words] ?? "Catena"}${id ? ` ${id}` : ""} – Catena`;
  }, [section, id]);
  switch (section) {
    case "runs":
      return id ? <Run id={wholeNumber(id)} tab={part ?? "graph"} /> : <RunsPage />;
    case "submit":
      return <SubmitPage again={query.get("again")} />;
    case "fleet":
      return <FleetPage />;
    case "compose":
      return id ? <ComposePage key={id} id={id} /> : <ComposeList />;
    case "simulate":
      return <SimulatePage run={query.get("run")} />;
    default:
      return <NoPage />;
  }
}

function Run({ id, tab }: { id: number | null; tab: string }) {
  return id === null ? <NoPage /> : <RunPage key={id} id={id} tab={tab} />;
}

function NoPage() {
  return <Empty>There is no such page.</Empty>;
}
