; Lua.

; --- functions

(function_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.function
(function_declaration
  name: [
    (dot_index_expression table: (_) @owner field: (identifier) @name)
    (method_index_expression table: (_) @owner method: (identifier) @name)
  ]
  body: (_)? @body) @definition.method

; M.once = function(…) … end
(assignment_statement
  (variable_list . name: [
    (identifier) @name
    (dot_index_expression table: (_) @owner field: (identifier) @name)
    (bracket_index_expression table: (_) @owner field: (string (string_content) @name))
  ] .)
  (expression_list . value: (function_definition body: (_)? @body) .)) @definition.lambda
(field
  name: [
    (identifier) @name
    (string (string_content) @name)
  ]
  value: (function_definition body: (_)? @body)) @definition.lambda

; --- classes

; A table with a capitalised name, or one made by a function that makes classes.
((assignment_statement
  (variable_list . name: (identifier) @name .)
  (expression_list . value: (table_constructor) .)) @definition.class
  (#match? @name "^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$"))
((assignment_statement
  (variable_list . name: (identifier) @name .)
  (expression_list . value: (function_call name: (_) @_maker) .)) @definition.class
  (#match? @name "^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
  (#match? @_maker "([cC]lass|extend|[iI]nherit|setmetatable|derive|mixin)$"))

; Any other table that a name is bound to holds its functions.
(assignment_statement
  (variable_list . name: [
    (identifier) @name
    (dot_index_expression field: (identifier) @name)
  ] .)
  (expression_list . value: (table_constructor) .)) @scope

; --- inheritance

((field name: (identifier) @_index value: (identifier) @reference.inherits)
  (#eq? @_index "__index")
  (#not-eq? @reference.inherits "self"))
((assignment_statement
  (variable_list . name: (identifier) @_class .)
  (expression_list . value: (function_call
    name: (_) @_maker
    arguments: (arguments (identifier) @reference.inherits))))
  (#match? @_class "^[A-Z]")
  (#match? @_maker "([cC]lass|extend|[iI]nherit|derive)$"))

; --- references

(function_call name: (identifier) @reference.call)
(function_call name: [
  (dot_index_expression table: (_) @receiver field: (identifier) @reference.call)
  (method_index_expression table: (_) @receiver method: (identifier) @reference.call)
])

(arguments (identifier) @reference.value)
(arguments (dot_index_expression table: (_) @receiver field: (identifier) @reference.value))
(expression_list value: (identifier) @reference.value)
(field value: (identifier) @reference.value)
(return_statement (expression_list (identifier) @reference.value))

; --- imports

((assignment_statement
  (variable_list . name: (identifier) @import.alias)
  (expression_list . value: [
    (function_call name: (identifier) @_require arguments: (arguments . (string) @import.module))
    (dot_index_expression
      table: (function_call
        name: (identifier) @_require
        arguments: (arguments . (string) @import.module))
      field: (identifier) @import.name)
  ])) @import
  (#eq? @_require "require"))
((function_call name: (identifier) @_require arguments: (arguments . (string) @import.module)) @import
  (#any-of? @_require "require" "dofile" "loadfile"))

; --- values of a file

((assignment_statement
  (variable_list . name: (identifier) @name .) (expression_list . value: (_) .)) @definition.constant
  (#match? @name "^_*[A-Z][A-Z0-9_]+$"))
