/**
 * The flow that the plugins declare, as nodes and edges, as a Mermaid chart, and as the section of a page. Used by
 * `holdfast graph` and `npm run docs`; reads registrations and starts nothing.
 */
export { mermaid } from './mermaid.ts';
export { graphOf } from './nodes.ts';
export { graphSection } from './section.ts';
