; Go

; --- definitions -----------------------------------------------------------------------
(function_declaration name: (identifier) @name body: (block)? @body) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration
    name: (identifier)? @self
    type: [
      (type_identifier) @owner
      (generic_type type: (type_identifier) @owner)
      (pointer_type (type_identifier) @owner)
      (pointer_type (generic_type type: (type_identifier) @owner))
    ]))
  name: (field_identifier) @name
  body: (block)? @body) @definition.method

(type_spec name: (type_identifier) @name
  type: (struct_type (field_declaration_list) @body)) @definition.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(method_elem name: (field_identifier) @name) @definition.method

(var_spec name: (identifier) @name
  value: (expression_list . (func_literal body: (block) @body) .)) @definition.lambda
(short_var_declaration
  left: (expression_list . (identifier) @name .)
  right: (expression_list . (func_literal body: (block) @body) .)) @definition.lambda
(assignment_statement
  left: (expression_list . [(identifier) @name (selector_expression field: (field_identifier) @name)] .)
  right: (expression_list . (func_literal body: (block) @body) .)) @definition.lambda
(keyed_element
  key: (literal_element [(identifier) @name (interpreted_string_literal) @name])
  value: (literal_element (func_literal body: (block) @body))) @definition.lambda

; a literal bound to a variable of the package owns its functions
(source_file (var_declaration (var_spec name: (identifier) @name
  value: (expression_list . [(composite_literal) (unary_expression operand: (composite_literal))] .)) @scope))

; constants, and variables of the package
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name value: (_)) @definition.constant))
(source_file (var_declaration (var_spec_list
  (var_spec name: (identifier) @name value: (_)) @definition.constant)))

; --- imports ---------------------------------------------------------------------------
(import_spec !name path: (_) @import.module)
(import_spec name: (package_identifier) @import.alias path: (_) @import.module)
(import_spec name: (dot) @import.wildcard path: (_) @import.module)
(import_spec name: (blank_identifier) @import.alias path: (_) @import.module)

; --- references ------------------------------------------------------------------------
(call_expression function: (identifier) @reference.call)
(call_expression function: (selector_expression operand: (_) @receiver field: (_) @reference.call))
(call_expression function: (parenthesized_expression (identifier) @reference.call))
(call_expression function: (type_instantiation_expression type: (type_identifier) @reference.call))
(type_conversion_expression type: (generic_type type: (type_identifier) @reference.call))
(type_conversion_expression type: (generic_type
  type: (qualified_type package: (_) @receiver name: (_) @reference.call)))
(call_expression function: (index_expression operand: (identifier) @reference.call))
(call_expression function: (index_expression
  operand: (selector_expression operand: (_) @receiver field: (_) @reference.call)))

(field_declaration !name type: (type_identifier) @reference.inherits)
(field_declaration !name type: (generic_type type: (type_identifier) @reference.inherits))
(field_declaration !name
  type: (qualified_type package: (_) @receiver name: (_) @reference.inherits))
(interface_type (type_elem . (type_identifier) @reference.inherits .))
(interface_type (type_elem . (qualified_type package: (_) @receiver name: (_) @reference.inherits) .))

(qualified_type package: (_) @receiver name: (type_identifier) @reference.type)
(type_identifier) @reference.type

; mere mentions
(argument_list (identifier) @reference.value)
(argument_list (selector_expression operand: (identifier) @receiver field: (_) @reference.value))
(keyed_element value: (literal_element (identifier) @reference.value))
(keyed_element value: (literal_element
  (selector_expression operand: (identifier) @receiver field: (_) @reference.value)))
(literal_value (literal_element (identifier) @reference.value))
(expression_list (identifier) @reference.value)
(expression_list (selector_expression operand: (identifier) @receiver field: (_) @reference.value))
(binary_expression (identifier) @reference.value)
(binary_expression (selector_expression operand: (identifier) @receiver field: (_) @reference.value))
(expression_case (expression_list (selector_expression
  operand: (identifier) @receiver field: (_) @reference.value)))

; --- what a variable holds -------------------------------------------------------------
(parameter_declaration name: (identifier) @variable type: (_) @variable.type)
(var_spec name: (identifier) @variable type: (_) @variable.type)
(short_var_declaration left: (expression_list . (identifier) @variable) right: (expression_list . [
  (composite_literal type: (_) @variable.type)
  (unary_expression operand: (composite_literal type: (_) @variable.type))
]))
(field_declaration name: (field_identifier) @variable type: (_) @variable.type)
(short_var_declaration left: (expression_list . (identifier) @variable)
  right: (expression_list . (call_expression function: (identifier) @_new
    arguments: (argument_list . (type_identifier) @variable.type)))
  (#eq? @_new "new"))
