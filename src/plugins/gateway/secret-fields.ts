import type { SecretFields } from '../../core/host/logging/secret-fields.ts';

/** Whoever has the id of a session can go on with it. */
export const secretFields: SecretFields = { names: ['mcpsessionid'] };
