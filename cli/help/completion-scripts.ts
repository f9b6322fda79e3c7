/**
 * What a shell sources. Each asks the program itself, `customers __complete -- WORDS`, and never evaluates
 * what was typed. The answer is a line a candidate, a tab before its description; the one line `:files`
 * means: complete a path.
 */
export const COMPLETION_SCRIPTS = {
  bash: `# customers: completion for bash 3.2 and later. In ~/.bashrc:  eval "$(customers completion bash)"
_customers() {
  local line quoted
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      # bash before 4.0, which macOS has, does not know compopt.
      if type compopt >/dev/null 2>&1; then
        compopt -o default
      else
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
      fi
      return
    fi
    printf -v quoted %q "\${line%%$'\\t'*}"
    COMPREPLY+=("$quoted")
  done < <("$1" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if type compopt >/dev/null 2>&1; then compopt +o default; fi
}
complete -F _customers customers
`,
  zsh: `#compdef customers
# customers: completion for zsh. In ~/.zshrc, after compinit:  source <(customers completion zsh)
# Or as the file _customers in a directory of $fpath.
_customers() {
  local -a lines candidates
  local line
  lines=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == :files ]]; then
    _files
    return
  fi
  for line in "\${lines[@]}"; do
    [[ -n $line ]] && candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe customers candidates
}
# Loaded from $fpath, this file runs at the first Tab, and must complete at once.
if [[ \${funcstack[1]} == _customers ]]; then
  _customers "$@"
else
  compdef _customers customers
fi
`,
  fish: `# customers: completion for fish. customers completion fish > ~/.config/fish/completions/customers.fish
function __customers_complete
    set -l words (commandline -opc)
    set -l lines ($words[1] __complete -- $words[2..] (commandline -ct) 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path (commandline -ct)
    else
        string collect -- $lines | string split \\n
    end
end
complete -c customers -f -a '(__customers_complete)'
`,
} as const;

export const SHELLS = ["bash", "zsh", "fish"] as const satisfies readonly (keyof typeof COMPLETION_SCRIPTS)[];
