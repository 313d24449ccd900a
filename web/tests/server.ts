import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Where cargo has built. */
export const BUILT = resolve(process.env.CATENA_BUILT ?? "../target/debug");

async function freePort(): Promise<number> {
  return new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => done(port));
    });
  });
}

/** A real server in a directory of its own, which can be killed and started again. */
export class Server {
  private child: ChildProcess | undefined;
  private said = "";

  private constructor(
    readonly directory: string,
    readonly port: number,
  ) {}

  /** Starts one; `prepare` may put something into its directory before. */
  static async start(settings = "", prepare: (directory: string) => void = () => undefined): Promise<Server> {
    const server = new Server(mkdtempSync(join(tmpdir(), "catena-workbench-")), await freePort());
    writeFileSync(join(server.directory, "catena.yaml"), `agent: {cpus: 2, cache: false}\n${settings}`);
    prepare(server.directory);
    await server.begin();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts the process, where it was before. */
  async begin(): Promise<void> {
    const args = ["serve", "--listen", `127.0.0.1:${this.port}`];
    this.child = spawn(join(BUILT, "catena"), args, { cwd: this.directory, stdio: ["ignore", "ignore", "pipe"] });
    this.child.stderr!.on("data", (text) => (this.said += text));
    for (let i = 0; i < 200; i++) {
      const healthy = await fetch(`${this.url}/health`).catch(() => null);
      if (healthy?.ok) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`the server does not answer:\n${this.said}`);
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    const child = this.child!;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  }

  /** Ends it for good and leaves nothing behind. */
  async end(): Promise<void> {
    if (this.child?.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** The token of its owner. */
  get owner(): string {
    return readFileSync(join(this.directory, ".catena", "token"), "utf8").trim();
  }

  /** A token for somebody. */
  token(name: string, role: "viewer" | "editor" | "operator"): string {
    return this.catena("token", "create", name, "--role", role).trim();
  }

  /** Runs a command in the directory of the server. */
  catena(...args: string[]): string {
    return execFileSync(join(BUILT, "catena"), args, { cwd: this.directory, encoding: "utf8" });
  }

  /** Asks for something as its owner. */
  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(this.url + path, { ...init, headers: { Authorization: `Bearer ${this.owner}`, ...init.headers } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  /** Submits a workflow and returns the number of its run. */
  async submit(text: string): Promise<number> {
    const answer = await this.ask("/runs", { method: "POST", body: text });
    return ((await answer.json()) as { run: number }).run;
  }

  /** Waits until a run is over, and returns how it ended. */
  async ended(run: number): Promise<string> {
    for (let i = 0; i < 600; i++) {
      const { state } = (await (await this.ask(`/runs/${run}`)).json()) as { state: string };
      if (state !== "running") return state;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`run ${run} does not end`);
  }
}
