/**
 * The bus: typed topics, the streams that carry them, and the routes that say which actor hears which topic.
 *
 * Everything that enters Holdfast (a router event, an HTTP request, a clock tick) is published here first.
 * This folder imports nothing of ours and may be imported by `core` and `plugins`. Whoever makes a bus imports `bus.ts`:
 * it loads RxJS, which no declaration needs.
 */
export type { Bus, Envelope, PublishMeta, SubscriberFailure } from './bus.ts';
export { defineRoute, type Route, type RouteTarget } from './route.ts';
export { defineTopic, type Topic } from './topic.ts';
