/** What is written on canvases; the style sheet calls it `--font`. */
export const FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
/** Sharper than this costs time and nobody sees it. */
const SHARPEST = 2;

/**
 * A canvas that follows the size of its container and the sharpness of the screen, and is drawn anew only when something has
 * changed: `invalidate` as often as you like, `paint` is called once per frame at most.
 */
export class Surface {
  readonly context: CanvasRenderingContext2D;
  /** In CSS pixels. */
  width = 0;
  height = 0;
  /** Pixels of the screen per CSS pixel. */
  ratio = 1;
  private frame = 0;
  private readonly observer: ResizeObserver;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly paint: (surface: Surface) => void,
  ) {
    // Pictures are opaque, and drawing is quicker if the browser knows.
    this.context = canvas.getContext("2d", { alpha: false })!;
    this.observer = new ResizeObserver(() => this.invalidate());
    this.observer.observe(canvas);
    window.addEventListener("resize", this.invalidate);
    this.invalidate();
  }

  readonly invalidate = () => {
    if (this.frame === 0) this.frame = requestAnimationFrame(this.draw);
  };

  dispose() {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    window.removeEventListener("resize", this.invalidate);
  }

  private readonly draw = () => {
    this.frame = 0;
    const { canvas } = this;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    if (this.width === 0 || this.height === 0) return;
    this.ratio = Math.min(window.devicePixelRatio || 1, SHARPEST);
    const wide = Math.round(this.width * this.ratio);
    const high = Math.round(this.height * this.ratio);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.paint(this);
  };
}
