/** The operations of an OpenAPI document, and the chosen ones as tools. */
import type { JsonObject } from '../../../core/kernel/json.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { type Node, type ParsedDocument, Refusal } from './document.ts';
import type { ApiDescription, ApiTool, Method, OperationSummary, Selection } from './model.ts';
import { parametersOf } from './parameters.ts';
import { SchemaCopier } from './schemas.ts';

const METHODS = ['get', 'head', 'put', 'post', 'delete', 'patch', 'options', 'trace'] as const;
/** Those that only read by their definition (RFC 9110, 9.2.1). */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD']);
const MOST_TOOLS = 500;
/** Characters of all definitions of tools together. */
const MOST_TEXT = 4 * 1024 * 1024;
const LONGEST_NAME = 64;
const LONGEST_DESCRIPTION = 4_096;

interface Operation extends Omit<OperationSummary, 'problem'> {
  readonly item: Node;
  readonly operation: Node;
}

/**
 * @param selection of the operations that become tools; none unless given
 * @param check throws a Refusal when a tool's schemas are no schemas
 * @throws Refusal the document, or an operation that is chosen by its id, can not be used
 */
export function describeApi(
  document: ParsedDocument,
  selection: Selection | undefined,
  check: (tool: ApiTool) => void,
): ApiDescription {
  const operations = operationsOf(document.root);
  const make = (operation: Operation): ApiTool => {
    const tool = toolOf(document, operation);
    check(tool);
    return tool;
  };
  const { info } = document.root;
  const { title = '', version = '' } = isObject(info) ? info : {};
  const found = { title: String(title), version: String(version) };
  if (!selection) {
    const summaries = operations.map((operation) => ({
      ...summaryOf(operation),
      ...problemOf(() => make(operation)),
    }));
    return { ...found, operations: summaries, tools: [], leftOut: [] };
  }
  const { tools, leftOut } = chosenTools(operations, selection, make);
  return { ...found, operations: operations.map(summaryOf), tools, leftOut };
}

const summaryOf = ({ id, method, path, tags }: Operation): OperationSummary => ({ id, method, path, tags });

function problemOf(make: () => unknown): { readonly problem?: string } {
  try {
    make();
    return {};
  } catch (error) {
    if (error instanceof Refusal) return { problem: error.message };
    throw error;
  }
}

function operationsOf({ paths }: Node): readonly Operation[] {
  const found: Operation[] = [];
  const ids = new Map<string, string>();
  for (const [path, item] of Object.entries(isObject(paths) ? paths : {})) {
    if (!isObject(item)) continue;
    for (const method of METHODS) {
      const operation = item[method];
      if (!isObject(operation)) continue;
      const { operationId, tags } = operation;
      const id = typeof operationId === 'string' ? operationId : `${method}${path.replace(/[^\w]+/g, '_')}`;
      const place = `${method.toUpperCase()} ${path}`;
      const other = ids.get(id);
      if (other !== undefined)
        throw new Refusal(`the operations ${other} and ${place} have the same id ${id}`);
      ids.set(id, place);
      const names = Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
      found.push({ id, method: method.toUpperCase(), path, tags: names, item, operation });
    }
  }
  return found;
}

function chosenTools(
  operations: readonly Operation[],
  { operations: ids, tags, writes }: Selection,
  make: (operation: Operation) => ApiTool,
): { readonly tools: readonly ApiTool[]; readonly leftOut: readonly string[] } {
  const isThere = (id: string): boolean => operations.some((operation) => operation.id === id);
  const unknown = ids.find((id) => !isThere(id));
  if (unknown !== undefined) throw new Refusal(`it has no operation ${unknown}`);
  const unused = tags.find((tag) => !operations.some((operation) => operation.tags.includes(tag)));
  if (unused !== undefined) throw new Refusal(`none of its operations has the tag ${unused}`);
  const tools = new Map<string, { readonly id: string; readonly tool: ApiTool }>();
  const leftOut: string[] = [];
  let text = 0;
  for (const operation of operations) {
    const byId = ids.includes(operation.id);
    if (!byId && !operation.tags.some((tag) => tags.includes(tag))) continue;
    try {
      if (!writes && !READS.has(operation.method))
        throw new Refusal(`${operation.method} may change something: set writes: true`);
      const tool = make(operation);
      const first = tools.get(tool.name);
      if (first)
        throw new NameClash(
          `the operations ${first.id} and ${operation.id} would both be the tool ${tool.name}`,
        );
      tools.set(tool.name, { id: operation.id, tool });
      text += JSON.stringify(tool).length;
    } catch (error) {
      if (!(error instanceof Refusal) || error instanceof NameClash) throw error;
      if (byId) throw new Refusal(`its operation ${operation.id}: ${error.message}`);
      leftOut.push(`${operation.id}: ${error.message}`);
    }
    if (tools.size > MOST_TOOLS) throw new Refusal(`more than ${MOST_TOOLS} operations are chosen`);
    if (text > MOST_TEXT) throw new Refusal(`the chosen operations take more than ${MOST_TEXT} characters`);
  }
  if (tools.size === 0) throw new Refusal(`no operation is left: ${leftOut.join('; ').slice(0, 500)}`);
  return { tools: [...tools.values()].map(({ tool }) => tool), leftOut };
}

/** Two tools of one name could not be told apart, however they were chosen. */
class NameClash extends Refusal {}

function toolOf(document: ParsedDocument, { id, method, path, item, operation }: Operation): ApiTool {
  if (!isOffered(method)) throw new Refusal(`${method} is not supported`);
  const schemas = new SchemaCopier(document, 'sent');
  const { parameters, properties, required } = parametersOf(document.root, path, item, operation, schemas);
  const body = bodyOf(operation, schemas);
  if (body && Object.hasOwn(properties, 'body'))
    throw new Refusal('it has a parameter named body beside its body, which is not supported');
  const needed = [...required, ...(body?.isRequired ? ['body'] : [])];
  const { summary, description, deprecated } = operation;
  const said = [deprecated === true ? 'Deprecated.' : '', summary, description].filter(
    (text) => typeof text === 'string' && text !== '',
  );
  const outputSchema = outputOf(document, operation);
  return {
    name: id.replace(/[^\w.-]+/g, '_').slice(0, LONGEST_NAME),
    ...(typeof summary === 'string' && summary !== '' && { title: summary.slice(0, 256) }),
    description: said.join('\n\n').slice(0, LONGEST_DESCRIPTION) || `${method} ${path}`,
    method,
    path: literalPath(path),
    parameters,
    ...(body && { bodyType: body.type }),
    inputSchema: {
      type: 'object',
      properties: { ...properties, ...(body && { body: body.schema }) },
      ...(needed.length > 0 && { required: needed }),
      additionalProperties: false,
      ...schemas.definitions(),
    },
    ...(outputSchema && { outputSchema }),
  };
}

function isOffered(method: string): method is Method {
  return method !== 'OPTIONS' && method !== 'TRACE';
}

/** Percent-encodes all of a path but its parameters in braces. */
function literalPath(path: string): string {
  if (!path.startsWith('/') || /[?#\\]/.test(path) || !path.isWellFormed())
    throw new Refusal('its path is not valid');
  const parts = path.split(/(\{[^{}]*\})/);
  // Percent signs stand as they are: a path may be encoded already.
  return parts
    .map((part, index) => (index % 2 === 1 ? part : encodeURI(part).replaceAll('%25', '%')))
    .join('');
}

interface Body {
  readonly type: string;
  readonly schema: JsonObject | boolean;
  readonly isRequired: boolean;
}

const isJsonType = (type: string): boolean => /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type);

function bodyOf({ requestBody }: Node, schemas: SchemaCopier): Body | undefined {
  if (!isObject(requestBody)) return undefined;
  const { content, required } = requestBody;
  const types = isObject(content) ? Object.entries(content) : [];
  const [type, media] = types.find(([name]) => isJsonType(name)) ?? [];
  if (type === undefined) {
    if (required !== true) return undefined;
    throw new Refusal(
      `its body is ${types.map(([name]) => name).join(', ') || 'of no type'}, and only JSON is supported`,
    );
  }
  const schema = isObject(media) && media.schema !== undefined ? schemas.copy(media.schema) : {};
  return { type, schema: schema as JsonObject | boolean, isRequired: required === true };
}

/** @returns the schema of the answer where there is one successful one, which is an object in JSON */
function outputOf(document: ParsedDocument, { responses }: Node): JsonObject | undefined {
  const successful = Object.entries(isObject(responses) ? responses : {}).filter(([status]) =>
    status.startsWith('2'),
  );
  const [, only] = successful[0] ?? [];
  if (successful.length !== 1 || !isObject(only) || !isObject(only.content)) return undefined;
  const types = Object.entries(only.content);
  const [type = '', media] = types[0] ?? [];
  if (types.length !== 1 || !isJsonType(type) || !isObject(media) || media.schema === undefined)
    return undefined;
  const schema = new SchemaCopier(document, 'received').whole(media.schema);
  return schema.type === 'object' ? schema : undefined;
}
