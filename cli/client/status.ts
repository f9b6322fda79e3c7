/** 2xx (RFC 9110 §15.3): what the status says; whether a service can have meant it is for its reader to judge. */
export const isSuccess = (status: number): boolean => status >= 200 && status < 300;
