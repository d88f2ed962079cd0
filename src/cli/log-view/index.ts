/**
 * Records as an operator reads them: which ones (`select`, `instant`), in which words (`record-text`, `values`), what
 * is folded or taken together (`story`), and in which columns (`layout`); one record with all that belongs to it
 * (`family`, `record-page`). Commands load this folder when they run, `flags` before that; it knows records alone, no
 * machine and no plugin.
 */

export { cut, duration, jsonText, plainText, timestamp } from '../../core/host/terminal.ts';
export { familyOf } from './family.ts';
export { jsonLines } from './json-lines.ts';
export { Layout } from './layout.ts';
export { referenceTime, seqOfPlace } from './place.ts';
export { recordPage } from './record-page.ts';
export { stateName } from './record-text.ts';
export { boundsOf, inBatches, newest, whyNone } from './select.ts';
export { shown, shownDecision, shownEvent, sourceOf, sourcesOf, withLog } from './source.ts';
export { differenceLines, momentLines, shownState } from './states.ts';
export { type Describe, newestLines, Story } from './story.ts';
