/** Those who want to know when something has changed. `subscribe` is what `useSyncExternalStore` asks for. */
export class Listeners {
  private readonly all = new Set<() => void>();

  readonly subscribe = (listener: () => void) => {
    this.all.add(listener);
    return () => void this.all.delete(listener);
  };

  tell() {
    for (const listener of this.all) listener();
  }
}
