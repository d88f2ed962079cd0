/** The answers of the API, for the pages: types alone. They are those of the schemas. */
import type { z } from 'zod';
import type { act } from './act.ts';
import type { listActions } from './actions.ts';
import type { listActors, showActor } from './actors.ts';
import type { listChanges } from './changes.ts';
import type { compare } from './compare.ts';
import type { Endpoint } from './endpoint.ts';
import type { recordRow } from './filters.ts';
import type { listHappened } from './happened.ts';
import type { logFacts } from './log.ts';
import type { showMachine } from './machines.ts';
import type { overview } from './overview.ts';
import type { listPages, showPage } from './pages.ts';
import type { listRecords, recordAtTime, showRecord } from './records.ts';
import type { Section } from './sections.ts';
import type { density, listStories, showStory } from './stories.ts';
import type { whatIf } from './what-if.ts';

type AnswerOf<E extends Endpoint> = z.output<E['answer']>;

export type RecordRow = z.output<typeof recordRow>;
export type LogAnswer = AnswerOf<typeof logFacts>;
export type RecordsAnswer = AnswerOf<typeof listRecords>;
export type RecordAtTimeAnswer = AnswerOf<typeof recordAtTime>;
export type RecordAnswer = AnswerOf<typeof showRecord>;
export type MachineAnswer = AnswerOf<typeof showMachine>;
export type StoriesAnswer = AnswerOf<typeof listStories>;
export type StoryAnswer = AnswerOf<typeof showStory>;
export type HappenedAnswer = AnswerOf<typeof listHappened>;
export type DensityAnswer = AnswerOf<typeof density>;
export type ActorsAnswer = AnswerOf<typeof listActors>;
export type ActorAnswer = AnswerOf<typeof showActor>;
export type OverviewAnswer = AnswerOf<typeof overview>;
export type ChangesAnswer = AnswerOf<typeof listChanges>;
export type CompareAnswer = AnswerOf<typeof compare>;
export type WhatIfAnswer = AnswerOf<typeof whatIf>;
export type PagesAnswer = AnswerOf<typeof listPages>;
export type PageAnswer = AnswerOf<typeof showPage>;
export type PageSection = Section;
export type ActionsAnswer = AnswerOf<typeof listActions>;
export type ActionAnswer = AnswerOf<typeof act>;

/** Parts of answers that several pages draw. */
export type Bucket = DensityAnswer['buckets'][number];
export type Story = StoriesAnswer['stories'][number];
export type ActorLine = ActorsAnswer['actors'][number];
export type Change = RecordAnswer['changes'][number];
export type Candidate = RecordAnswer['candidates'][number];
