/** What a status says (RFC 9110 15). */
export const accepted = (status: number): boolean => status >= 200 && status < 300;
export const isClientError = (status: number): boolean => status >= 400 && status < 500;
/** The service refuses the form of the body, so another form is worth a try. */
export const isBadBody = (status: number): boolean => [400, 415, 422].includes(status);
export const isGone = (status: number): boolean => status === 404 || status === 410;
