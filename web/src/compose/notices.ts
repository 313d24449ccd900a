import { shortName } from "../ui/format";
import { attempt, complain, dismiss, tell } from "../ui/toasts";
import type { Desk } from "./live/desk";
import type { Notice, Room } from "./live/room";
import { describePlace } from "./model/place";

/** What concerns one's own locks is said where everybody looks. */
export function heard({ room, desk }: { room: Room; desk: Desk }, notice: Notice) {
  if (notice.kind === "refused") return void complain(new Error(`A change from before was refused: ${notice.message}`));
  const part = room.view ? describePlace(room.view.composition, notice.unit) : notice.unit;
  const { unit } = notice;
  switch (notice.kind) {
    case "idle":
      if (desk.isBusy(unit)) return room.touch(unit);
      return ask(`You have not used your lock on ${part} for a while. It ends in ${seconds(notice.within)}.`, notice.within, [
        { label: "Keep it", act: () => room.touch(unit) },
        { label: "Let go", act: () => desk.leave(unit) },
      ]);
    case "asked":
      return ask(`${shortName(notice.by)} asks you to hand over ${part}. It goes over in ${seconds(notice.within)} unless you use it.`, notice.within, [
        { label: "Hand over", act: () => void handOver(room, desk, unit) },
        { label: "Keep it", act: () => room.touch(unit) },
      ]);
    case "lost": {
      const why = {
        expired: "the connection was gone for too long",
        idle: "it was not used",
        handedover: "it was handed over",
        broken: "an owner took it away",
        gone: "the part is gone",
        away: "somebody else has it",
        wanted: "",
      };
      const rest = desk.part(unit).draft ? " What you typed is kept as a draft." : "";
      tell(`You do not have the lock on ${part} any more: ${why[notice.why]}.${rest}`);
    }
  }
}

/** A question that answers itself after some time. */
function ask(text: string, within: number, actions: { label: string; act: () => void }[]) {
  const shown = tell(text, { actions });
  setTimeout(() => dismiss(shown), within);
}

function seconds(millis: number): string {
  return `${Math.round(millis / 1000)} s`;
}

/** What was typed is saved first, then the part goes to whoever asked. */
async function handOver(room: Room, desk: Desk, unit: string) {
  await desk.save(unit);
  await attempt(() => room.ask({ type: "give", unit }));
}
