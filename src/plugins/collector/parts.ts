import type { KeyRing } from './key-ring.ts';
import type { KeySource, OwnKey, Reading } from './key-source.ts';

/** What the plugin is made of once it has started. */
export interface CollectorParts {
  readonly ring: KeyRing;
  readonly source: KeySource;
  /** Where we are the collector. */
  readonly own: OwnKey | undefined;
  /** The newest reading. */
  readonly reading: Reading;
  /** Reads the source again, and takes up what it says. */
  reload(): void;
}

/** What a command says where the instance lacks this plugin. */
export const NO_COLLECTOR = 'it runs no collector plugin';
