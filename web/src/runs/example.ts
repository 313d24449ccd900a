/** A small workflow that runs anywhere, to begin with. */
export const EXAMPLE = `catena: 1
name: word counts

inputs:
  words: [chain, agent, task]

steps:
  # One task for each word; they run side by side.
  repeat:
    for: word in words
    run: |
      for i in 1 2 3; do echo {word}; done > {out}
      echo "wrote three lines of {word}"
    out: "{word}.txt"

  # Waits for all of them.
  count:
    run: |
      echo "file,lines" > {out}
      for f in {repeat}; do echo "$(basename $f),$(wc -l < $f)" >> {out}; done
    out: counts.csv

results:
  counts: "{count}"
`;
