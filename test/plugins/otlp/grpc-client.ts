import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';

/** How a call ended. */
export interface Ended {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata;
  /** The answer of a call that ended well. */
  readonly answer?: Buffer | undefined;
}

/** Sends an export request. @param message empty unless given @param service traces unless told */
export async function callGrpc(
  url: string,
  authorization: string | undefined,
  channel: ChannelCredentials = credentials.createInsecure(),
  message: Buffer = Buffer.alloc(0),
  service = 'trace.v1.TraceService',
): Promise<Ended> {
  const client = new Client(new URL(url).host, channel);
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  const same = (bytes: Buffer) => bytes;
  const path = `/opentelemetry.proto.collector.${service}/Export`;
  try {
    return await new Promise<Ended>((resolve) => {
      const ended = (error: ServiceError | null, answer?: Buffer) =>
        resolve(
          error
            ? { code: error.code, details: error.details, metadata: error.metadata }
            : { code: status.OK, details: '', answer },
        );
      client.makeUnaryRequest(path, same, same, message, metadata, { deadline: Date.now() + 20_000 }, ended);
    });
  } finally {
    client.close();
  }
}
