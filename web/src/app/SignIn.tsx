import { useState, type FormEvent } from "react";
import { asProblem, Problem } from "../api/client";
import type { WhoAmI } from "../api/types";
import { Button, ProblemNote } from "../ui/parts";
import { signedIn } from "./session";
import styles from "./app.module.css";

/** Asks for a token. */
export function SignIn({ problem }: { problem: Problem | undefined }) {
  const [token, setToken] = useState("");
  const [remember, setRemember] = useState(false);
  const [refused, setRefused] = useState<Problem | undefined>(problem);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setRefused(undefined);
    const headers = { Authorization: `Bearer ${token.trim()}` };
    try {
      const response = await fetch("/whoami", { headers });
      if (response.status === 401) throw new Problem(401, "This token is not known here, or it has expired.");
      if (!response.ok) throw new Problem(response.status, "This token is not for people.");
      signedIn((await response.json()) as WhoAmI, token.trim(), remember);
    } catch (error) {
      setRefused(asProblem(error, "The server does not answer."));
    }
  }

  return (
    <main className={styles.signIn}>
      <h1>Catena</h1>
      <p className="soft">
        Who owns the server finds a token in its state directory, or opens the workbench with <code>catena serve --open</code>. Others ask them
        for one: <code>catena token create NAME --role editor</code>.
      </p>
      <form onSubmit={submit}>
        <label>
          Token
          <input type="password" value={token} onChange={(e) => setToken(e.target.value)} autoComplete="current-password" autoFocus required />
        </label>
        <label className={styles.inline}>
          <input type="checkbox" checked={remember} onChange={(e) => setRemember(e.target.checked)} /> Stay signed in on this machine
        </label>
        <ProblemNote problem={refused} />
        <Button type="submit" look="primary">
          Sign in
        </Button>
      </form>
    </main>
  );
}
