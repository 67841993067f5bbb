; Bash and other shells.

(function_definition name: (word) @name body: (_) @body) @definition.function

; Commands that may be functions: no path, no option.
((command name: (command_name (word) @reference.call))
  (#match? @reference.call "^[A-Za-z_][A-Za-z0-9_:.-]*$"))

; trap cleanup EXIT
((command
  name: (command_name (word) @_trap)
  . argument: (word) @reference.value)
  (#any-of? @_trap "trap" "command" "type" "declare"))

((command
  name: (command_name (word) @_source)
  . argument: [
    (word) @import.module @import.wildcard
    (raw_string) @import.module @import.wildcard
    (string (string_content) @import.module @import.wildcard .)
    (concatenation (word) @import.module @import.wildcard .)
    (concatenation (string (string_content) @import.module @import.wildcard .) .)
  ]) @import
  (#any-of? @_source "source" "."))

(program (declaration_command "readonly"
  (variable_assignment name: (variable_name) @name)) @definition.constant)
