/**
 * The REST paths: keys, budgets and the list of servers, for the holder of the master key, and `/key/info` (G14, G15).
 */
export { type AdminParts, adminEndpoints } from './admin.ts';
export { recordRefusal } from './admission.ts';
export { isRestPath, restErrorBody } from './rest-errors.ts';
