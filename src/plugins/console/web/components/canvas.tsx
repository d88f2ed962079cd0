import { useEffect, useRef } from 'preact/hooks';

/** The colours of the theme by their names in the style sheet; what a canvas draws knows no variables. */
export function colours(canvas: HTMLCanvasElement): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    canvas.style.color = `var(--${name})`;
    const { color } = getComputedStyle(canvas);
    known.set(name, color);
    return color;
  };
}

interface Props {
  readonly draw: (context: CanvasRenderingContext2D, width: number, height: number) => void;
  /** Pixels. */
  readonly height: number;
  /** The facts of the picture in words, for those who cannot see it. */
  readonly label: string;
  readonly onPointer?: (type: 'down' | 'move' | 'up', x: number, width: number) => void;
}

/** A drawing that is drawn again when its size, its facts or the theme change; sharp on every screen. */
export function Canvas({ draw, height, label, onPointer }: Props) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext('2d');
    if (!canvas || !context) return undefined;
    const paint = () => {
      const width = canvas.clientWidth;
      const scale = devicePixelRatio;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      draw(context, width, height);
    };
    paint();
    const sizes = new ResizeObserver(paint);
    sizes.observe(canvas);
    const theme = matchMedia('(prefers-color-scheme: dark)');
    theme.addEventListener('change', paint);
    return () => {
      sizes.disconnect();
      theme.removeEventListener('change', paint);
    };
  }, [draw, height]);
  const point = (type: 'down' | 'move' | 'up') => (event: PointerEvent) => {
    const canvas = ref.current;
    if (!canvas || !onPointer) return;
    if (type === 'down') canvas.setPointerCapture(event.pointerId);
    onPointer(type, event.clientX - canvas.getBoundingClientRect().left, canvas.clientWidth);
  };
  return (
    <canvas
      ref={ref}
      role="img"
      aria-label={label}
      style={{ height: `${height}px` }}
      onPointerDown={point('down')}
      onPointerMove={point('move')}
      onPointerUp={point('up')}
    />
  );
}
