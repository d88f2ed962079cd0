/** Checks values against JSON Schemas, within a limit of time: a pattern, or schemas that branch, may take for ever. */
import { isNativeError } from 'node:util/types';
import { createContext, Script } from 'node:vm';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonObject } from '../../../core/kernel/json.ts';

/** Longest time of one check, milliseconds. */
const LONGEST_MS = 500;

/** @returns what is wrong with a value, as a part of a sentence that begins with its place; undefined when nothing is */
export type CheckValue = (value: unknown) => string | undefined;

/** @throws the schema is none */
export function compileSchema(schema: JsonObject): CheckValue {
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    inlineRefs: false,
    ownProperties: true,
    logger: false,
  });
  const validate = ajv.compile(schema);
  return (value) => within(validate, value);
}

const context = createContext({ check: undefined });
const script = new Script('check()');

function within(validate: ValidateFunction, value: unknown): string | undefined {
  let isValid = false;
  context.check = () => {
    isValid = validate(value) === true;
  };
  try {
    // The limit holds for whatever runs meanwhile, regular expressions included.
    script.runInContext(context, { timeout: LONGEST_MS });
  } catch (error) {
    // An error of that context, which is no Error of this one.
    if (isNativeError(error) && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return `can not be checked within ${LONGEST_MS} ms`;
    if (error instanceof RangeError) return 'is nested too deeply to be checked';
    throw error;
  } finally {
    context.check = undefined;
  }
  return isValid ? undefined : problemOf(validate.errors?.[0]);
}

function problemOf(error: ErrorObject | undefined): string {
  if (!error) return 'is not valid';
  const { instancePath, message = 'is not valid', params } = error;
  const extra = 'additionalProperty' in params ? ` (${params.additionalProperty})` : '';
  const allowed = 'allowedValues' in params ? ` (${JSON.stringify(params.allowedValues).slice(0, 300)})` : '';
  return `${instancePath.slice(0, 300)} ${message.slice(0, 300)}${extra.slice(0, 100)}${allowed}`.trim();
}
