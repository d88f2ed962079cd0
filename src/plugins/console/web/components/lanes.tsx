import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { StoryAnswer } from '../../api/types.ts';
import { at, travel } from '../location.ts';
import { colours } from './canvas.tsx';
import { type LanesLayout, layOut } from './lanes-layout.ts';
import { AXIS, LANE, type LanesView, lanesWidth, NAMES, paintLanes, pixelOf } from './lanes-paint.ts';

const MOST_ZOOM = 20_000;
/** What one press of a key moves, as a share of what is seen; and a second of holding it. */
const STEP = 0.08;
const PER_SECOND = 0.9;
/** How many times larger one press makes it, and a second of holding. */
const LARGER = 1.25;
const LARGER_PER_SECOND = 6;
/** Less than so many pixels is a click, not a drag. */
const CLICK = 4;

/** A story as lanes, one an actor: records as points, causes as arrows, effects as bars, timers as dashed lines. */
export function Lanes({ story }: { story: Pick<StoryAnswer, 'records' | 'spans'> }) {
  const layout = useMemo(() => layOut(story), [story.records, story.spans]);
  const section = useRef<HTMLElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isCrowded, setCrowded] = useState(false);
  const picture = useMemo(() => new Picture(setCrowded), []);
  useEffect(() => {
    if (section.current && canvas.current) return picture.attach(section.current, canvas.current);
    return undefined;
  }, [picture]);
  const seq = at.value;
  useEffect(() => picture.show(layout, seq), [picture, layout, seq]);
  const failed = story.records.filter((row) => row.failed).length;
  const { actors } = layout;
  return (
    <figure class="lanes-figure">
      <section
        class="lanes"
        ref={section}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys zoom and move it
        tabIndex={0}
        aria-label="Lanes: w and s zoom, a and d move, f shows all"
      >
        <div style={{ height: `${actors.length * LANE + AXIS}px` }}>
          <canvas
            ref={canvas}
            role="img"
            aria-label={`${actors.length} actors, ${story.records.length} records, ${failed} failed; the list below has all of them`}
          />
        </div>
      </section>
      {isCrowded && (
        <figcaption class="quiet">Too many causes to tell their arrows apart: zoom in with w.</figcaption>
      )}
    </figure>
  );
}

/** Draws the part of the lanes that is seen, once a frame at most, and moves it by keys, wheel and pointer. */
class Picture {
  readonly #onCrowded: (isCrowded: boolean) => void;
  #layout: LanesLayout | undefined;
  #view: LanesView = { zoom: 1, shift: 0, top: 0, width: 0, height: 0, seq: undefined };
  #section: HTMLElement | undefined;
  #canvas: HTMLCanvasElement | undefined;
  #colour: ((name: string) => string) | undefined;
  #frame = 0;
  #frameAt = 0;
  /** The keys that are held. */
  readonly #held = new Set<string>();
  #drag: { readonly x: number; readonly y: number; readonly view: LanesView; moved: boolean } | undefined;

  constructor(onCrowded: (isCrowded: boolean) => void) {
    this.#onCrowded = onCrowded;
  }

  /** @returns lets go of them */
  attach(section: HTMLElement, canvas: HTMLCanvasElement): () => void {
    [this.#section, this.#canvas] = [section, canvas];
    const ends = new AbortController();
    const { signal } = ends;
    const sizes = new ResizeObserver(() => this.#resize());
    for (const element of [section, section.firstElementChild]) if (element) sizes.observe(element);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    const recolour = () => {
      this.#colour = undefined;
      this.#paintSoon();
    };
    theme.addEventListener('change', recolour, { signal });
    section.addEventListener('scroll', () => this.#move({ top: section.scrollTop }), { signal });
    section.addEventListener('keydown', (event) => this.#keyDown(event), { signal });
    section.addEventListener('keyup', ({ key }) => this.#held.delete(key), { signal });
    section.addEventListener('blur', () => this.#held.clear(), { signal });
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { signal, passive: false });
    canvas.addEventListener('pointerdown', (event) => this.#pointerDown(event), { signal });
    canvas.addEventListener('pointermove', (event) => this.#pointerMove(event), { signal });
    canvas.addEventListener('pointerup', (event) => this.#pointerUp(event), { signal });
    canvas.addEventListener('pointercancel', () => this.#dragEnds(), { signal });
    this.#resize();
    return () => {
      ends.abort();
      sizes.disconnect();
      cancelAnimationFrame(this.#frame);
      this.#frame = 0;
    };
  }

  show(layout: LanesLayout, seq: number | undefined): void {
    this.#layout = layout;
    this.#move({ seq });
  }

  #resize(): void {
    const [section, canvas] = [this.#section, this.#canvas];
    if (!section || !canvas) return;
    const inner = section.firstElementChild?.clientHeight ?? 0;
    const [width, height] = [section.clientWidth, Math.min(inner, section.clientHeight)];
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    this.#move({ width, height, top: section.scrollTop });
    this.#paint();
  }

  #move(changes: Partial<LanesView>): void {
    const view = { ...this.#view, ...changes };
    const zoom = Math.min(MOST_ZOOM, Math.max(1, view.zoom));
    this.#view = { ...view, zoom, shift: Math.min(1 - 1 / zoom, Math.max(0, view.shift)) };
    this.#paintSoon();
  }

  /** @param place what stays where it is, 0 to 1 */
  #zoom(larger: number, place = this.#view.shift + 0.5 / this.#view.zoom): void {
    const { zoom, shift } = this.#view;
    const next = Math.min(MOST_ZOOM, Math.max(1, zoom * larger));
    this.#move({ zoom: next, shift: place - ((place - shift) * zoom) / next });
  }

  #paintSoon(): void {
    if (this.#frame !== 0) return;
    this.#frameAt = performance.now();
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#goOn();
      this.#paint();
    });
  }

  #paint(): void {
    const context = this.#canvas?.getContext('2d');
    if (!context || !this.#layout) return;
    this.#colour ??= colours(context.canvas);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    this.#onCrowded(paintLanes(context, this.#layout, this.#view, this.#colour));
  }

  /** A key that is held moves on with every frame. */
  #goOn(): void {
    if (this.#held.size === 0) return;
    const seconds = Math.min(0.1, (performance.now() - this.#frameAt) / 1_000);
    const way = PER_SECOND * seconds;
    if (this.#held.has('a')) this.#move({ shift: this.#view.shift - way / this.#view.zoom });
    if (this.#held.has('d')) this.#move({ shift: this.#view.shift + way / this.#view.zoom });
    if (this.#held.has('w')) this.#zoom(LARGER_PER_SECOND ** seconds);
    if (this.#held.has('s')) this.#zoom(LARGER_PER_SECOND ** -seconds);
    this.#paintSoon();
  }

  #keyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { zoom, shift } = this.#view;
    const steps: Record<string, () => void> = {
      w: () => this.#zoom(LARGER),
      s: () => this.#zoom(1 / LARGER),
      a: () => this.#move({ shift: shift - STEP / zoom }),
      d: () => this.#move({ shift: shift + STEP / zoom }),
      f: () => this.#move({ zoom: 1, shift: 0 }),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) this.#held.add(event.key);
    else step();
    this.#paintSoon();
  }

  #wheel(event: WheelEvent): void {
    const { zoom, shift, width } = this.#view;
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey) this.#zoom(Math.exp(-event.deltaY / 300), this.#placeAt(event.offsetX));
    else if (sideways !== 0) this.#move({ shift: shift + sideways / (zoom * lanesWidth(width)) });
    else return;
    event.preventDefault();
  }

  #placeAt(x: number): number {
    const { zoom, shift, width } = this.#view;
    return shift + (x - pixelOf(shift, this.#view)) / (zoom * lanesWidth(width));
  }

  #pointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#canvas?.setPointerCapture(event.pointerId);
    this.#drag = { x: event.clientX, y: event.clientY, view: this.#view, moved: false };
  }

  #pointerMove(event: PointerEvent): void {
    const drag = this.#drag;
    if (!drag || !this.#section) return;
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    drag.moved ||= Math.hypot(x, y) >= CLICK;
    if (!drag.moved) return;
    const { zoom, shift, top, width } = drag.view;
    this.#move({ shift: shift - x / (zoom * lanesWidth(width)) });
    this.#section.scrollTop = top - y;
  }

  #pointerUp(event: PointerEvent): void {
    const isClick = this.#drag?.moved === false;
    this.#dragEnds();
    const seq = isClick ? this.#nearest(event.offsetX, event.offsetY) : undefined;
    if (seq !== undefined) travel(seq);
  }

  #dragEnds(): void {
    this.#drag = undefined;
  }

  /** The record of the lane that is nearest to a point, pixels. */
  #nearest(x: number, y: number): number | undefined {
    if (!this.#layout || x < NAMES) return undefined;
    const { dots, seqs } = this.#layout;
    const lane = (y + this.#view.top - AXIS) / LANE - 0.5;
    let [best, least]: [number | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
    for (let index = 0; index < seqs.length; index += 1) {
      const away = Math.abs(pixelOf(dots.x[index] ?? 0, this.#view) - x);
      const far = away + Math.abs((dots.lane[index] ?? 0) - lane) * LANE;
      if (far < least) [best, least] = [seqs[index], far];
    }
    return best;
  }
}
