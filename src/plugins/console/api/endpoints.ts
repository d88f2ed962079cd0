import { act } from './act.ts';
import type { Endpoint } from './endpoint.ts';
import { QUESTIONS } from './questions.ts';

/** All paths of the API that answer with JSON; `paths.ts` names them for the surface. */
export const ENDPOINTS: readonly Endpoint[] = [...QUESTIONS, act];
