/** Copies schemas of an OpenAPI document into JSON Schemas of the dialect 2020-12 that stand on their own. */
import { isObject, type Json, type JsonObject } from '../../../core/kernel/json.ts';
import { type Node, type ParsedDocument, Refusal, valueAt } from './document.ts';

/** Of one tool, so that no client gets a list that it can't take. */
const MOST_SCHEMAS = 5_000;

const SCHEMAS_BY_NAME = ['properties', 'patternProperties', 'dependentSchemas'];
const SCHEMA_LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const SCHEMAS = [
  'items',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
];
/** Keywords whose values are no schemas. All others, such as `discriminator` and `x-…`, say nothing to a validator. */
const PLAIN = [
  'type',
  'enum',
  'const',
  'default',
  'title',
  'description',
  'format',
  'deprecated',
  'multipleOf',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'maxContains',
  'minContains',
  'maxProperties',
  'minProperties',
  'dependentRequired',
  'contentEncoding',
  'contentMediaType',
];
/** They change what a reference means, and are rare. */
const REFUSED = ['$id', '$anchor', '$dynamicRef', '$dynamicAnchor', '$recursiveRef'];

/** The schemas of one tool's arguments, or of its answer. */
export class SchemaCopier {
  readonly #document: ParsedDocument;
  /** Of properties that only the other direction has. */
  readonly #absent: 'readOnly' | 'writeOnly';
  /** Names in `$defs` by reference. */
  readonly #names = new Map<string, string>();
  readonly #definitions = new Map<string, Json>();
  #count = 0;

  /** @param direction the schema is of what is sent, without `readOnly` properties, or of what comes back, without `writeOnly` ones */
  constructor(document: ParsedDocument, direction: 'sent' | 'received') {
    this.#document = document;
    this.#absent = direction === 'sent' ? 'readOnly' : 'writeOnly';
  }

  /** @throws Refusal it refers to nothing, or is too large */
  copy(schema: unknown): Json {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) throw new Refusal('one of its schemas is neither an object nor a boolean');
    this.#count += 1;
    if (this.#count > MOST_SCHEMAS) throw new Refusal(`its schemas have more than ${MOST_SCHEMAS} parts`);
    const { $ref } = schema;
    const is30 = this.#document.version === '3.0';
    if (typeof $ref === 'string' && is30) return { $ref: this.#refer($ref) };
    const refused = REFUSED.find((keyword) => typeof schema[keyword] === 'string');
    if (refused !== undefined) throw new Refusal(`a schema has ${refused}, which is not supported`);
    const copied: Record<string, Json> = typeof $ref === 'string' ? { $ref: this.#refer($ref) } : {};
    for (const keyword of PLAIN) if (schema[keyword] !== undefined) copied[keyword] = schema[keyword] as Json;
    for (const keyword of SCHEMAS)
      if (schema[keyword] !== undefined) copied[keyword] = this.copy(schema[keyword]);
    for (const keyword of SCHEMA_LISTS) {
      const list = schema[keyword];
      if (Array.isArray(list)) copied[keyword] = list.map((one) => this.copy(one));
    }
    for (const keyword of SCHEMAS_BY_NAME) {
      const named = schema[keyword];
      if (isObject(named)) copied[keyword] = this.#copyNamed(named);
    }
    if (Array.isArray(schema.required)) {
      const { properties } = schema;
      const isSent = (name: unknown) =>
        !(
          isObject(properties) &&
          Object.hasOwn(properties, String(name)) &&
          this.#isAbsent(properties[String(name)])
        );
      copied.required = schema.required.filter(isSent) as Json[];
    }
    return is30 ? upgraded(schema, copied) : copied;
  }

  /** @returns the schema with the definitions that it refers to; one whose root is a reference is written out */
  whole(schema: unknown): JsonObject {
    let copied = this.copy(schema);
    for (
      let steps = 0;
      isObject(copied) && typeof copied.$ref === 'string' && Object.keys(copied).length === 1;
      steps += 1
    ) {
      const target = this.#definitions.get(copied.$ref.slice('#/$defs/'.length));
      if (target === undefined || steps > 16) throw new Refusal('its references go round in a circle');
      copied = target;
    }
    return { ...(isObject(copied) ? copied : {}), ...this.definitions() };
  }

  /** @returns `$defs` for what was copied; nothing where none is referred to */
  definitions(): { readonly $defs?: JsonObject } {
    return this.#definitions.size === 0 ? {} : { $defs: Object.fromEntries(this.#definitions) };
  }

  #copyNamed(named: Node): JsonObject {
    const present = Object.entries(named).filter(([, schema]) => !this.#isAbsent(schema));
    return Object.fromEntries(
      present.map(([name, schema]) => {
        const copied = this.copy(schema);
        if (typeof copied !== 'boolean') return [name, copied];
        return [name, copied ? {} : { not: {} }]; // older clients know no boolean schemas
      }),
    );
  }

  #isAbsent(schema: unknown): boolean {
    return isObject(schema) && schema[this.#absent] === true;
  }

  /** @returns the reference within the copy */
  #refer(reference: string): string {
    let name = this.#names.get(reference);
    if (name === undefined) {
      const base = reference
        .slice(reference.lastIndexOf('/') + 1)
        .replace(/[^\w.-]+/g, '_')
        .slice(0, 64);
      const taken = new Set(this.#names.values());
      name = base;
      for (let count = 2; taken.has(name) || name === ''; count += 1) name = `${base}_${count}`;
      this.#names.set(reference, name);
      // Copied after its name is known: a schema may contain itself.
      this.#definitions.set(name, this.copy(valueAt(this.#document.root, reference)));
    }
    return `#/$defs/${name}`;
  }
}

/** What OpenAPI 3.0 says otherwise than JSON Schema 2020-12. */
function upgraded(schema: Node, copied: Record<string, Json>): Json {
  const { nullable, type, enum: values } = schema;
  for (const [limit, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[exclusive] !== 'boolean') continue;
    delete copied[exclusive];
    const value = copied[limit];
    if (schema[exclusive] !== true || value === undefined) continue;
    copied[exclusive] = value;
    delete copied[limit];
  }
  if (nullable === true && typeof type === 'string') {
    copied.type = [type, 'null'];
    if (Array.isArray(values) && !values.includes(null)) copied.enum = [...(values as Json[]), null];
  }
  return copied;
}
