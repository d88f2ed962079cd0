/**
 * `holdfast gateway doctor`: looks at the gateway from outside as a client would (`probe.ts`), knows the documents' table
 * of symptoms (`symptoms.ts`), and reads clients' files and tokens without showing them (G22).
 */
export { doctorCommand } from './command.ts';
