/**
 * The flow that the plugins declare, as nodes and edges and as a Mermaid chart. Used by
 * `holdfast graph` and `npm run docs`; reads registrations and starts nothing.
 */
export { mermaid } from './mermaid.ts';
export { graphOf } from './nodes.ts';
