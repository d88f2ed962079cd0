/**
 * What an API server refuses of an object: `complaints` says so as the server's strict decoding and its validation do.
 * Kubernetes' own kinds are read from the models of `@kubernetes/client-node`, which are generated from the published
 * OpenAPI schema (unknown fields, required fields, types); those of operators from `operators.ts`. Rules that no schema
 * holds, of the kinds that Holdfast makes or ships, are in `RULES`.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as models from '@kubernetes/client-node';
import { Cron } from 'croner';
import { OPERATOR_KINDS } from './operators.ts';

/** A field of a model: its type, whether it must be there, and the format of a number or text. */
interface Field {
  readonly type: string;
  readonly format: string;
  readonly required: boolean;
}

interface Model {
  getAttributeTypeMap(): { baseName: string; type: string; format: string }[];
}

/** @returns one sentence for each fault; none when a server would take the object */
export function complaints(object: Record<string, any>): string[] {
  const { apiVersion, kind } = object;
  const operator = OPERATOR_KINDS[`${apiVersion} ${kind}`];
  if (operator) {
    const { error } = operator.safeParse(object);
    return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`);
  }
  const version = String(apiVersion).split('/').at(-1) ?? '';
  const name = `${version[0]?.toUpperCase()}${version.slice(1)}${kind}`;
  const type = name === 'V1Event' ? 'CoreV1Event' : name;
  if (fieldsOf(type) === undefined) return [`no schema is known for ${apiVersion} ${kind}`];
  return [...walk(object, { type, format: '', required: true }, ''), ...rulesOf(object)];
}

function walk(value: unknown, field: Field, path: string): string[] {
  const { type, format } = field;
  const list = /^(?:Array|Set)<(.*)>$/.exec(type)?.[1];
  if (list !== undefined) {
    if (!Array.isArray(value)) return [`${path} must be a list`];
    return value.flatMap((item, index) => walk(item, { ...field, type: list }, `${path}[${index}]`));
  }
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (map !== undefined) {
    if (!isObject(value)) return [`${path} must be an object`];
    return Object.entries(value).flatMap(([key, item]) =>
      walk(item, { ...field, type: map }, `${path}.${key}`),
    );
  }
  if (type === 'any') return [];
  const scalar = scalarFault(value, type, format);
  if (scalar !== undefined) return scalar === '' ? [] : [`${path} ${scalar}`];
  const fields = fieldsOf(type);
  if (fields === undefined) return [`${path} is of the type ${type}, which has no schema`];
  if (!isObject(value)) return [`${path} must be an object`];
  const place = (key: string) => (path === '' ? key : `${path}.${key}`);
  const missing = [...fields].flatMap(([key, { required }]) =>
    required && value[key] === undefined ? [`missing required field "${place(key)}"`] : [],
  );
  const wrong = Object.entries(value).flatMap(([key, item]) => {
    const known = fields.get(key);
    if (known === undefined) return [`unknown field "${place(key)}"`];
    // A server takes null for a field that is not there.
    if (item === null) return known.required ? [`missing required field "${place(key)}"`] : [];
    return walk(item, known, place(key));
  });
  return [...missing, ...wrong];
}

/** @returns what is wrong, nothing ('') or undefined when the type is no scalar */
function scalarFault(value: unknown, type: string, format: string): string | undefined {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') return 'must be a string';
      return format === 'byte' && !/^[A-Za-z0-9+/]*={0,2}$/.test(value) ? 'must be base64' : '';
    case 'boolean':
      return typeof value === 'boolean' ? '' : 'must be a boolean';
    case 'number':
      if (typeof value !== 'number') return 'must be a number';
      return format.startsWith('int') && !Number.isInteger(value) ? 'must be an integer' : '';
    case 'IntOrString':
      return typeof value === 'string' || Number.isInteger(value) ? '' : 'must be an integer or a string';
    case 'Date':
    case 'V1MicroTime':
      return typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(value)
        ? ''
        : 'must be a time (RFC 3339)';
  }
  return undefined;
}

const known = new Map<string, ReadonlyMap<string, Field> | undefined>();

function fieldsOf(type: string): ReadonlyMap<string, Field> | undefined {
  if (!known.has(type)) known.set(type, readModel(type));
  return known.get(type);
}

function readModel(type: string): ReadonlyMap<string, Field> | undefined {
  const model: unknown = Object.entries(models).find(([name]) => name === type)?.[1];
  if (!isModel(model)) return undefined;
  // Only the declarations say which fields are required.
  const main = fileURLToPath(import.meta.resolve('@kubernetes/client-node'));
  const declaration = readFileSync(new URL(`gen/models/${type}.d.ts`, `file://${main}`), 'utf8');
  const fields = model.getAttributeTypeMap().map(({ baseName, type: of, format }) => {
    const required = new RegExp(`^ +'${baseName}': `, 'm').test(declaration);
    return [baseName, { type: of, format, required }] as const;
  });
  return new Map(fields);
}

function isModel(value: unknown): value is Model {
  return typeof value === 'function' && 'getAttributeTypeMap' in value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Rule = (object: Record<string, any>) => string[];

/** Rules of the server's validation code, which come after its schema. */
const RULES: Readonly<Record<string, Rule>> = {
  Pod: ({ spec }) => podFaults(spec, 'spec'),
  Deployment: ({ spec }) => podFaults(spec.template.spec, 'spec.template.spec', ['Always']),
  DaemonSet: ({ spec }) => podFaults(spec.template.spec, 'spec.template.spec', ['Always']),
  Job: ({ spec }) => podFaults(spec.template.spec, 'spec.template.spec', ['OnFailure', 'Never'], 'Always'),
  CronJob: ({ spec }) => [
    ...scheduleFaults(spec.schedule),
    ...podFaults(
      spec.jobTemplate.spec.template.spec,
      'spec.jobTemplate.spec.template.spec',
      ['OnFailure', 'Never'],
      'Always',
    ),
  ],
};

function rulesOf(object: Record<string, any>): string[] {
  try {
    return RULES[object.kind]?.(object) ?? [];
  } catch (error) {
    // Something that a rule reads is missing, which the schema has said already.
    if (error instanceof TypeError) return [];
    throw error;
  }
}

function scheduleFaults(schedule: string): string[] {
  try {
    new Cron(schedule, { paused: true });
    return schedule.split(' ').length === 5 ? [] : [`spec.schedule: expected exactly 5 fields: ${schedule}`];
  } catch (error) {
    return [`spec.schedule: ${(error as Error).message}`];
  }
}

/** @param restarts policies that the owner of the pod may have; any unless given */
function podFaults(spec: any, path: string, restarts?: readonly string[], usual = 'Always'): string[] {
  const faults: string[] = [];
  const policy = spec.restartPolicy ?? usual;
  if (restarts && !restarts.includes(policy)) {
    faults.push(
      `${path}.restartPolicy: Unsupported value: "${policy}": supported values: ${restarts.join(', ')}`,
    );
  }
  const volumes = new Set((spec.volumes ?? []).map(({ name }: { name: string }) => name));
  for (const group of ['initContainers', 'containers']) {
    for (const [index, container] of (spec[group] ?? []).entries()) {
      const place = `${path}.${group}[${index}]`;
      if (!container.image) faults.push(`${place}.image: Required value`);
      for (const { name } of container.volumeMounts ?? []) {
        if (!volumes.has(name)) faults.push(`${place}.volumeMounts.name: Not found: "${name}"`);
      }
      for (const { name } of container.env ?? []) {
        if (!/^[A-Za-z_.-][\w.-]*$/.test(name)) faults.push(`${place}.env.name: Invalid value: "${name}"`);
      }
      for (const quantities of Object.values<object>(container.resources ?? {})) {
        for (const [name, quantity] of Object.entries(quantities)) {
          if (!QUANTITY.test(quantity))
            faults.push(`${place}.resources.${name}: Invalid value: "${quantity}"`);
        }
      }
    }
  }
  return faults;
}

const QUANTITY = /^\d+(?:\.\d+)?(?:[numkMGTPE]|[KMGTPE]i|e\d+)?$/;
