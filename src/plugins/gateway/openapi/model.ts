/** What is read of an OpenAPI document: its operations, and those that were chosen as tools. Plain data: it comes from a worker. */
import type { JsonObject } from '../../../core/kernel/json.ts';

export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'PATCH';

/** How a parameter's value becomes text (OpenAPI, "Style Values"). */
export type Style =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'deepObject'
  /** JSON, of a parameter that has `content`. */
  | 'json';

/** A parameter of an operation, and the tool's argument that has its value. */
export interface Parameter {
  /** Name of the argument. */
  readonly argument: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly style: Style;
  readonly explode: boolean;
}

/** An operation as a tool. */
export interface ApiTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly method: Method;
  /** The path with its parameters in braces; all else is percent-encoded. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Media type of the JSON body, which is the argument `body`; undefined where there is none. */
  readonly bodyType?: string;
  /** JSON Schemas of the dialect 2020-12, which refer to nothing outside of themselves. */
  readonly inputSchema: JsonObject;
  /** Where the only successful answer is an object in JSON. */
  readonly outputSchema?: JsonObject;
}

/** An operation as a list shows it. */
export interface OperationSummary {
  /** Its `operationId`, or one made of method and path. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly tags: readonly string[];
  /** Why it can't be a tool. */
  readonly problem?: string;
}

/** Which operations become tools. */
export interface Selection {
  readonly operations: readonly string[];
  readonly tags: readonly string[];
  /** Whether operations that may change something are among them. */
  readonly writes: boolean;
}

/** A document that was read. */
export interface ApiDescription {
  readonly title: string;
  readonly version: string;
  readonly operations: readonly OperationSummary[];
  readonly tools: readonly ApiTool[];
  /** Operations that a tag chooses and that are no tools, with the reason. */
  readonly leftOut: readonly string[];
}
