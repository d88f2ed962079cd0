/** Session ids that carry their session, sealed: there is no table of sessions (G18). */
export { SealedSessions } from './sealed-sessions.ts';
