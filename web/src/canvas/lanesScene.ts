import { MARK, type LanesData } from "./lanesData";
import { LanesView } from "./lanesView";
import { marked } from "./marks";
import { overview } from "./overview";
import { pack } from "./packing";
import { shade, type Fading } from "./shades";

const NOTHING: LanesData = {
  lanes: [],
  lane: new Int32Array(0),
  start: new Float64Array(0),
  end: new Float64Array(0),
  colour: new Int32Array(0),
  mark: new Uint8Array(0),
  colours: [],
};

/** Everything that is computed from data before it can be drawn, and what of it is looked at. */
export class LanesScene {
  readonly view = new LanesView();
  fading: Fading = { only: null };
  data = NOTHING;
  packed = pack(NOTHING);
  shades = shade(NOTHING, this.packed, this.fading);
  overview = overview(this.packed, this.view.bounds);
  /** Failed attempts and lost agents. */
  bad = marked(NOTHING, this.packed);
  retried = this.bad;
  vain = this.bad;
  selected = -1;
  hovered = -1;
  /** The room for names of lanes; measured when they are drawn. */
  gutter = 0;

  /** Shows other data from now on. */
  show(data: LanesData, until: number | undefined, live: boolean) {
    if (data !== this.data) {
      this.data = data;
      this.packed = pack(data);
      this.bad = marked(data, this.packed, MARK.failed, MARK.lost);
      this.retried = marked(data, this.packed, MARK.retried);
      this.vain = marked(data, this.packed, MARK.vain);
      this.gutter = 0;
      this.hovered = -1;
      this.shades = shade(data, this.packed, this.fading);
    }
    const { from, to } = this.packed;
    const first = Number.isFinite(from) ? Math.min(from, 0) : 0;
    const last = Math.max(until ?? -Infinity, to, first + 1);
    this.view.setBounds({ from: first, to: last }, live);
    this.overview = overview(this.packed, this.view.bounds);
  }

  /** Lets other bars fade. */
  fade(fading: Fading) {
    this.fading = fading;
    this.shades = shade(this.data, this.packed, fading);
  }
}
