import type { ReactNode } from "react";
import { shortName } from "../ui/format";
import { Button, classes } from "../ui/parts";
import { Link, usePlace } from "./router";
import { currentToken, signOut, useMe } from "./session";
import { setTheme, useThemeWish, type Wish } from "./theme";
import styles from "./app.module.css";

const SECTIONS = [
  { id: "runs", name: "Runs" },
  { id: "fleet", name: "Fleet" },
  { id: "compose", name: "Compose" },
  { id: "simulate", name: "Simulate" },
];

/** What is around every page. */
export function Shell({ children }: { children: ReactNode }) {
  const { parts } = usePlace();
  const me = useMe();
  const current = parts[0] === "submit" ? "runs" : (parts[0] ?? "runs");
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#content">
        Skip to the content
      </a>
      <header className={styles.header}>
        <Link to="/runs" className={styles.brand}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="24" height="24" /> Catena
        </Link>
        <nav className={styles.sections} aria-label="Sections">
          {SECTIONS.map((section) => (
            <Link
              key={section.id}
              to={`/${section.id}`}
              className={classes(styles.section, section.id === current && styles.currentSection)}
              aria-current={section.id === current ? "page" : undefined}
            >
              {section.name}
            </Link>
          ))}
        </nav>
        <span className={styles.spring} />
        <ThemeChoice />
        {me && (
          <span className={styles.user} title={`${me.name}: may do what the role ${me.role} may.`}>
            {shortName(me.name)} <span className="soft">{me.role}</span>
          </span>
        )}
        {currentToken() && (
          <Button look="quiet" onClick={signOut}>
            Sign out
          </Button>
        )}
      </header>
      <main id="content" className={styles.main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function ThemeChoice() {
  const wish = useThemeWish();
  const next: Record<Wish, Wish> = { system: "light", light: "dark", dark: "system" };
  const mark = { system: "◐", light: "☀", dark: "☾" }[wish];
  return (
    <Button look="quiet" onClick={() => setTheme(next[wish])} aria-label={`Theme: ${wish}. Change to ${next[wish]}.`} title={`Theme: ${wish}`}>
      <span aria-hidden="true">{mark}</span>
    </Button>
  );
}
