/** Everything about one chain: how it stands and why, its logs, its files, where they come from. */
export function ChainPanel({ run, chain, onClose }: { run: number; chain: number; onClose: () => void }) {
  return (
    <button onClick={onClose}>
      {run}/{chain}
    </button>
  );
}
