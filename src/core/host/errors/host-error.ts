import { defineErrors } from '../../kernel/errors/holdfast-error.ts';
import { configErrors } from './table/config.ts';
import { httpErrors } from './table/http.ts';
import { runtimeErrors } from './table/runtime.ts';

/** Errors of the host: configuration, plugins, surfaces, calls over HTTP and retention. */
export const HostError = defineErrors({ ...configErrors, ...runtimeErrors, ...httpErrors });
