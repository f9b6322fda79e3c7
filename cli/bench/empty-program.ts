/** Does nothing: what it takes, compiled, is what every program of this runtime takes. */
export {};
