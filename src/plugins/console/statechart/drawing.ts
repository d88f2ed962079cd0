/**
 * A statechart with the place of everything: what the pages draw. Pixels from the upper left corner; text is
 * monospaced, 11 pixels high.
 */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly states: readonly DrawnState[];
  readonly transitions: readonly DrawnTransition[];
}

export interface DrawnState {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** It is entered first in the state around it. */
  readonly isInitial: boolean;
}

/** All ways from one state to another: one line with a label. */
export interface DrawnTransition {
  readonly from: string;
  readonly to: string;
  /** Corners of the line, from its state to its target. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
  readonly label: { readonly x: number; readonly y: number; readonly lines: readonly string[] };
}
