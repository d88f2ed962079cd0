import type { ActorsAnswer, DensityAnswer, RecordAnswer, StoriesAnswer } from '../api/types.ts';

/** Parts of answers that several pages draw. */
export type Bucket = DensityAnswer['buckets'][number];
export type Story = StoriesAnswer['stories'][number];
export type ActorLine = ActorsAnswer['actors'][number];
export type Change = RecordAnswer['changes'][number];
